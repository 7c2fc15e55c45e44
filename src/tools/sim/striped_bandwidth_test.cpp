#include "sim/striped_bandwidth.hpp"

#include <gtest/gtest.h>

#include "sim/times_testing.hpp"

namespace hocket::sim {
namespace {

using testing::at;

constexpr double no_limit = 1e18;

// Returns the transfers that end next, and when in seconds.
std::pair<double, std::size_t> end_next(StripedBandwidth& target) {
  const Time next = target.next_end();
  std::vector<StripedBandwidth::TransferNumber> ended;
  target.take_ended(next, ended);
  return {to_s(next - time_from_ns(0)), ended.size()};
}

TEST(StripedBandwidth, HasItsWholeBandwidthOnAllParts) {
  StripedBandwidth target{400, 1, BandwidthSharing::fair, {}, 4};
  target.start(at(0), 800, no_limit);
  const auto [s, ended] = end_next(target);
  EXPECT_NEAR(s, 2, 1e-6);
  EXPECT_EQ(target.active(), 0U);
  EXPECT_EQ(ended, 1U);
}

TEST(StripedBandwidth, PartsHaveTheirShare) {
  StripedBandwidth target{400, 1, BandwidthSharing::fair, {}, 4};
  target.start(at(0), 400, no_limit, 1, {1});
  target.start(at(0), 400, no_limit, 1, {2, 3});
  EXPECT_NEAR(end_next(target).first, 2, 1e-6);
  EXPECT_EQ(target.active(), 1U);
  EXPECT_NEAR(end_next(target).first, 4, 1e-6);
  EXPECT_NEAR(to_s(target.busy()), 4, 1e-6);
  EXPECT_NEAR(to_s(target.overlap()), 2, 1e-6);
}

TEST(StripedBandwidth, OnlyThoseOnACommonPartShareIt) {
  StripedBandwidth target{200, 1, BandwidthSharing::fair, {}, 2};
  target.start(at(0), 200, no_limit, 1, {0});
  target.start(at(0), 200, no_limit, 1, {0, 1});
  // Part 0 serves both until the second has its 100 bytes there; part 1 has sent its 100 after 1 s.
  EXPECT_EQ(end_next(target).second, 0U) << "one stripe of the second";
  EXPECT_NEAR(end_next(target).first, 2, 1e-6);
  EXPECT_NEAR(end_next(target).first, 3, 1e-6);
}

TEST(StripedBandwidth, StopsAllStripes) {
  StripedBandwidth target{200, 1, BandwidthSharing::fair, {}, 2};
  const auto transfer = target.start(at(0), 400, no_limit);
  EXPECT_NEAR(target.left(at(1), transfer), 200, 1e-6);
  EXPECT_NEAR(target.stop(at(1), transfer), 200, 1e-6);
  EXPECT_EQ(target.next_end(), Time::max());
  EXPECT_EQ(target.start(at(2), 1, no_limit), transfer) << "the number is free again";
}

}  // namespace
}  // namespace hocket::sim
