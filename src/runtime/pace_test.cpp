#include "runtime/pace.hpp"

#include <gtest/gtest.h>

namespace hocket::runtime {
namespace {

constexpr std::int64_t mb = 1'000'000;

Time at(double s) { return Time{from_s(s)}; }

TEST(Pace, WaitsForNothingWithAllOfTheBandwidth) {
  Pace pace;
  pace.moved(at(10), from_s(1), 100 * mb, 1);
  EXPECT_LE(pace.next(1), at(10));
}

TEST(Pace, LetsAnAccessTakeAsLongAsAtItsShare) {
  Pace pace;
  pace.moved(at(10), from_s(1), 100 * mb, 1);
  pace.moved(at(20), from_s(1), 100 * mb, 0.25);
  EXPECT_EQ(pace.next(0.25), at(23));
  EXPECT_EQ(pace.next(0.5), at(21)) << "by the share of now";
  EXPECT_EQ(pace.next(1), at(20));
}

TEST(Pace, WhoWasSlowedByOthersAnywayWaitsForLess) {
  Pace pace;
  pace.moved(at(10), from_s(1), 100 * mb, 1);
  pace.moved(at(20), from_s(3), 100 * mb, 0.25);
  EXPECT_EQ(pace.next(0.25), at(21));
  pace.moved(at(30), from_s(5), 100 * mb, 0.25);
  EXPECT_EQ(pace.next(0.25), at(30));
}

TEST(Pace, WhereTheRateIsNotKnownThereIsNoWait) {
  Pace pace;
  EXPECT_EQ(pace.next(0.1), Time{});
  pace.moved(at(10), from_s(1), 100 * mb, 0.1);
  EXPECT_EQ(pace.next(0.1), at(10));
  pace.moved(at(10), from_s(1), 0, 1);
  pace.moved(at(10), from_s(0), 5, 1);
  EXPECT_EQ(pace.next(0.1), at(10));
}

TEST(Pace, TheWaitIsBounded) {
  for (const double share : {0.0, 1e-300, 1e-3, -1.0}) {
    Pace pace;
    pace.moved(at(10), from_s(1), 100 * mb, 1);
    EXPECT_EQ(pace.next(share), at(10) + Pace::longest_wait) << share;
  }
}

}  // namespace
}  // namespace hocket::runtime
