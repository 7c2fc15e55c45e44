#include "session/pace.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hocket::runtime {
namespace {

constexpr std::int64_t mb = 1'000'000;

Time at_s(double s) { return Time{from_s(s)}; }

// Returns a pace that has learnt 100 MB/s, and has a bandwidth share from then on.
AccessPace known(double share = 1) {
  AccessPace pace;
  pace.moved(at_s(10), from_s(1), 100 * mb, 1, true);
  pace.allow(share);
  return pace;
}

TEST(AccessPace, WaitsForNothingWithAllOfTheBandwidth) { EXPECT_EQ(known().next(1), at_s(10)); }

TEST(AccessPace, LetsAnAccessTakeAsLongAsAtItsShare) {
  AccessPace pace = known(0.25);
  pace.moved(at_s(20), from_s(1), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at_s(23));
  EXPECT_EQ(pace.next(0.5), at_s(21)) << "by the share of now";
  EXPECT_EQ(pace.next(1), at_s(20));
}

TEST(AccessPace, WhoWasSlowedByOthersAnywayWaitsForLess) {
  AccessPace pace = known(0.25);
  pace.moved(at_s(20), from_s(3), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at_s(21));
  pace.moved(at_s(30), from_s(5), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at_s(30));
}

TEST(AccessPace, WhoStoodStillOnItsWayHasWaitedForThat) {
  AccessPace pace = known(0.25);
  pace.moved(at_s(24), from_s(1), 100 * mb, 0.25, false, from_s(3));
  EXPECT_EQ(pace.next(0.25), at_s(24));
  pace.moved(at_s(25), from_s(1), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at_s(28)) << "of the same run";
}

TEST(AccessPace, AnotherShareIsForWhatComesAfterIt) {
  AccessPace pace = known();
  EXPECT_EQ(pace.next(0.1), at_s(10)) << "alone";
  pace.moved(at_s(20), from_s(1), 100 * mb, 0.5, false);
  EXPECT_EQ(pace.next(0.5), at_s(20)) << "it came at an unknown time of the access";
  pace.moved(at_s(21), from_s(1), 100 * mb, 0.5, false);
  EXPECT_EQ(pace.next(0.5), at_s(22));
  EXPECT_EQ(pace.next(0.1), at_s(22)) << "that was moved at a half";
  pace.allow(0.25);
  EXPECT_EQ(pace.next(0.25), at_s(21));
  pace.moved(at_s(22), from_s(1), 100 * mb, 0.25, false);
  EXPECT_EQ(pace.next(0.25), at_s(25));
}

TEST(AccessPace, WhoIsSlowHasLittleToTheGood) {
  AccessPace pace = known(0.5);
  pace.moved(at_s(100), from_s(50), 100 * mb, 0.5, false);
  pace.moved(at_s(101), from_s(1), 100 * mb, 0.5, false);
  EXPECT_EQ(pace.next(0.5), at_s(102));
}

// Returns an access that moves data from 20 s on, with a quarter of 100 MB/s.
PacedAccess quarter() {
  PacedAccess access({}, known(), 0.25);
  access.moves_from(at_s(20));
  return access;
}

TEST(PacedAccess, IsAheadWhenItHasMovedMoreThanItsShare) {
  PacedAccess access = quarter();
  EXPECT_FALSE(access.is_ahead(at_s(20.03), 3 * mb)) << "by 0.09 s";
  EXPECT_TRUE(access.is_ahead(at_s(20.05), 5 * mb));
  EXPECT_EQ(access.so_far(at_s(20.05), 5 * mb).next(0.25), at_s(20.2));
  EXPECT_EQ(access.so_far(at_s(20.05), 5 * mb).next(0.5), at_s(20.1));
  access.stopped(from_s(0.15));
  EXPECT_FALSE(access.is_ahead(at_s(20.2), 5 * mb));
  EXPECT_TRUE(access.is_ahead(at_s(20.25), 10 * mb));
  EXPECT_EQ(access.so_far(at_s(20.25), 10 * mb).next(0.25), at_s(20.4));
}

TEST(PacedAccess, HasLittleToTheGoodAfterStandingStill) {
  PacedAccess access = quarter();
  access.stopped(from_s(60));
  EXPECT_FALSE(access.is_ahead(at_s(80.05), 5 * mb));
  EXPECT_FALSE(access.is_ahead(at_s(80.07), 7 * mb)) << "from there on";
  EXPECT_TRUE(access.is_ahead(at_s(80.1), 10 * mb));
}

// Simulates an access of 16 MB a round at 55 MB/s, checked all the time. Its share is half of 100 MB/s.
TEST(PacedAccess, LongRoundsCountFromTheirBeginning) {
  PacedAccess access({}, known(), 0.5);
  access.moves_from(at_s(20));
  double now_s = 20;
  for (std::int64_t round = 1; round <= 100; ++round) {
    const double end_s = now_s + 16.0 / 55;
    for (; now_s < end_s; now_s += 0.01) ASSERT_FALSE(access.is_ahead(at_s(now_s), (round - 1) * 16 * mb)) << round;
    now_s = end_s;
    if (!access.is_ahead(at_s(now_s), round * 16 * mb)) continue;
    const double next_s = to_s(access.stop(at_s(now_s), round * 16 * mb).next(0.5).time_since_epoch());
    access.stopped(from_s(next_s - now_s));
    now_s = next_s;
  }
  EXPECT_NEAR(1600 / (now_s - 20), 50, 1);
}

TEST(PacedAccess, OwesNothingForWhatItMovedWithAnotherShare) {
  PacedAccess access({}, known(), 1);
  access.moves_from(at_s(20));
  access.change_share(0.1);
  EXPECT_EQ(access.so_far(at_s(119), 9900 * mb).next(0.1), at_s(119));
  EXPECT_FALSE(access.is_ahead(at_s(119), 9900 * mb));
  EXPECT_TRUE(access.is_ahead(at_s(119.1), 9910 * mb));
  EXPECT_EQ(access.so_far(at_s(119.1), 9910 * mb).next(0.1), at_s(120));
}

TEST(PacedAccess, IsNotStoppedAgainAtOnceWhereThatWasInVain) {
  PacedAccess access = quarter();
  EXPECT_EQ(access.stop(at_s(20.1), 2 * mb).next(0.25), at_s(20.1));
  EXPECT_FALSE(access.is_ahead(at_s(20.15), 15 * mb));
  EXPECT_TRUE(access.is_ahead(at_s(20.2), 20 * mb));
}

// The bytes moved in the end never fall short of the share, and exceed it by a little at most.
TEST(PacedAccess, KeepsToAnyShares) {
  std::mt19937 random(2026);
  for (int run = 0; run < 200; ++run) {
    PacedAccess access({}, known(), 1);
    double now_s = 20, allowed_mb = 0, moved_mb = 0, share = 1;
    int changes = 1;
    access.moves_from(at_s(now_s));
    for (int round = 0; round < 2000; ++round) {
      if (random() % 100 == 0) {
        access.change_share(share = 1.0 / static_cast<double>(1 + random() % 8));
        ++changes;
      }
      now_s += 0.01;
      moved_mb += 1;
      allowed_mb += 1 * share;
      const auto bytes = static_cast<std::int64_t>(moved_mb) * mb;
      if (share == 1 || !access.is_ahead(at_s(now_s), bytes)) continue;
      const double next_s = to_s(access.so_far(at_s(now_s), bytes).next(share).time_since_epoch());
      ASSERT_GE(next_s - now_s, 0.0999);
      ASSERT_LE(next_s - now_s, to_s(AccessPace::longest_wait));
      access.stopped(from_s(next_s - now_s));
      allowed_mb += (next_s - now_s) * 100 * share;
      now_s = next_s;
    }
    // With each share, it may be ahead by 0.1 s and a round, or behind by its cap of unused share.
    EXPECT_LE(moved_mb, allowed_mb + changes * 0.11 * 100) << run;
    EXPECT_GE(moved_mb, allowed_mb - changes * 0.06 * 100) << run;
  }
}

TEST(AccessPace, WhatWasSleptTooLongIsToTheGood) {
  AccessPace pace = known(0.25);
  double begin = 20;
  for (int i = 0; i < 1000; ++i) {  // accesses of 1 ms each, 0.5 ms late
    pace.moved(at_s(begin + 0.001), from_s(0.001), mb / 10, 0.25, false);
    begin = std::max(begin + 0.0015, to_s(pace.next(0.25).time_since_epoch()) + 0.0005);
  }
  EXPECT_NEAR(begin - 20, 4, 0.01);
}

TEST(AccessPace, WhereTheRateIsNotKnownThereIsNoWait) {
  AccessPace pace;
  EXPECT_EQ(pace.next(0.1), Time{});
  pace.moved(at_s(10), from_s(1), 100 * mb, 0.1, false);
  EXPECT_EQ(pace.next(0.1), at_s(10));
  pace.moved(at_s(10), from_s(1), 0, 1, true);
  pace.moved(at_s(10), from_s(0), 5, 1, true);
  EXPECT_EQ(pace.next(0.1), at_s(10));
}

TEST(AccessPace, AWaitIsBounded) {
  for (const double share : {0.0, 1e-300, 1e-3, -1.0}) {
    AccessPace pace = known(share);
    pace.moved(at_s(20), from_s(1), 100 * mb, share, false);
    EXPECT_EQ(pace.next(share), at_s(20) + AccessPace::longest_wait) << share;
  }
}

TEST(AccessPace, ARateThatIsTooLowCostsNoMoreThanTheShare) {
  AccessPace pace;
  pace.moved(at_s(10), from_s(1), 1, 1, true);  // a header, moved slowly
  pace.allow(0.5);
  pace.moved(at_s(20), from_s(0.1), 100 * mb, 0.5, false);
  EXPECT_EQ(pace.next(0.5), at_s(20.1));
}

TEST(AccessPace, LearnsByBytesNotByAccesses) {
  AccessPace pace;
  for (int i = 0; i < 20; ++i) {
    pace.moved(at_s(10 + i), from_s(0.01), 1, 1, true);
    pace.moved(at_s(10.5 + i), from_s(0.1), 10 * mb, 1, true);
  }
  pace.allow(0.5);
  pace.moved(at_s(50), from_s(0.1), 10 * mb, 0.5, false);
  EXPECT_NEAR(to_s(pace.next(0.5) - at_s(50)), 0.1, 0.005);
}

}  // namespace
}  // namespace hocket::runtime
