#include "runtime/pace.hpp"

#include <gtest/gtest.h>

namespace hocket::runtime {
namespace {

constexpr std::int64_t mb = 1'000'000;

Time at(double s) { return Time{from_s(s)}; }

// One that has shown 100 MB/s.
Pace known() {
  Pace pace;
  pace.moved(at(10), from_s(1), 100 * mb, 1, true);
  return pace;
}

TEST(Pace, WaitsForNothingWithAllOfTheBandwidth) { EXPECT_EQ(known().next(1), at(10)); }

TEST(Pace, LetsAnAccessTakeAsLongAsAtItsShare) {
  Pace pace = known();
  pace.moved(at(20), from_s(1), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at(23));
  EXPECT_EQ(pace.next(0.5), at(21)) << "by the share of now";
  EXPECT_EQ(pace.next(1), at(20));
}

TEST(Pace, WhoWasSlowedByOthersAnywayWaitsForLess) {
  Pace pace = known();
  pace.moved(at(20), from_s(3), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at(21));
  pace.moved(at(30), from_s(5), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at(30));
}

TEST(Pace, WhoStoodStillOnItsWayHasWaitedForThat) {
  Pace pace = known();
  pace.moved(at(24), from_s(1), 100 * mb, 0.25, false, from_s(3));
  EXPECT_EQ(pace.next(0.25), at(24));
  pace.moved(at(25), from_s(1), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at(28)) << "of the same run";
}

TEST(Pace, TellsInTheMiddleOfAnAccessWhenItIsAhead) {
  const PacedAccess access{.request = {}, .pace = known(), .begin = at(20), .stopped = from_s(2), .share = 0.25};
  EXPECT_EQ(access.so_far(at(23), 100 * mb).next(0.5), at(23)) << "it has stood still for long enough";
  EXPECT_EQ(access.so_far(at(23), 100 * mb).next(0.25), at(24));
  EXPECT_LT(access.so_far(at(23), 0).next(0.25), at(23)) << "nothing has been moved";
}

TEST(Pace, WhatWasSleptTooLongIsToTheGood) {
  Pace pace = known();
  double begin = 20;
  for (int i = 0; i < 1000; ++i) {  // of 1 ms each, and 0.5 ms too late
    pace.moved(at(begin + 0.001), from_s(0.001), mb / 10, 0.25, false);
    begin = std::max(begin + 0.0015, to_s(pace.next(0.25).time_since_epoch()) + 0.0005);
  }
  EXPECT_NEAR(begin - 20, 4, 0.01);
}

TEST(Pace, WhereTheRateIsNotKnownThereIsNoWait) {
  Pace pace;
  EXPECT_EQ(pace.next(0.1), Time{});
  pace.moved(at(10), from_s(1), 100 * mb, 0.1, false);
  EXPECT_EQ(pace.next(0.1), at(10));
  pace.moved(at(10), from_s(1), 0, 1, true);
  pace.moved(at(10), from_s(0), 5, 1, true);
  EXPECT_EQ(pace.next(0.1), at(10));
}

TEST(Pace, AWaitIsBounded) {
  for (const double share : {0.0, 1e-300, 1e-3, -1.0}) {
    Pace pace = known();
    pace.moved(at(20), from_s(1), 100 * mb, share, false);
    EXPECT_EQ(pace.next(share), at(20) + Pace::longest_wait) << share;
  }
}

TEST(Pace, ARateThatIsTooLowCostsNoMoreThanTheShare) {
  Pace pace;
  pace.moved(at(10), from_s(1), 1, 1, true);  // a header, slowly
  pace.moved(at(20), from_s(0.1), 100 * mb, 0.5, false);
  EXPECT_EQ(pace.next(0.5), at(20.1));
}

TEST(Pace, LearnsByBytesNotByAccesses) {
  Pace pace;
  for (int i = 0; i < 20; ++i) {
    pace.moved(at(10 + i), from_s(0.01), 1, 1, true);
    pace.moved(at(10.5 + i), from_s(0.1), 10 * mb, 1, true);
  }
  pace.moved(at(50), from_s(0.1), 10 * mb, 0.5, false);
  EXPECT_NEAR(to_s(pace.next(0.5) - at(50)), 0.1, 0.005);
}

}  // namespace
}  // namespace hocket::runtime
