// Tests of AccessHistory: what it learns of accesses by kind.
#include "model/access_history.hpp"

#include <gtest/gtest.h>

#include "model/testing.hpp"

namespace hocket::model {
namespace {

using testing::after_1_s;

class Accesses : public ::testing::Test {
 protected:
  // Runs one access that begins now and takes `span_s`, of which `shared_s` is beside one other.
  AccessHistory::Ended access(const char* routine, double span_s, std::int64_t bytes = 0, double shared_s = 0,
                              AccessLoad other = AccessLoad::write) {
    Occupancy occupancy;
    occupancy.kind = history.asked(routine, nullptr, bytes, true, after_1_s(now_s));
    occupancy.asked = occupancy.bytes = bytes;
    occupancy.since = after_1_s(now_s);
    occupancy.shared_s = shared_s;
    occupancy.others_s[static_cast<std::size_t>(other)] = shared_s;
    now_s += span_s;
    return history.ended(occupancy, after_1_s(now_s), {0, told_s, even});
  }
  double expected(const char* routine, std::int64_t bytes = 0) {
    return history.access(history.asked(routine, nullptr, bytes, false, after_1_s(now_s)), bytes)->seconds;
  }
  double beside(const char* routine, std::int64_t bytes) {
    return history.interference(history.asked(routine, nullptr, bytes, false, after_1_s(now_s)), AccessLoad::write);
  }

  AccessHistory history;
  double now_s = 0;
  double told_s = 0;
  bool even = false;
};

TEST_F(Accesses, OfEachKindItsOwnTimeIsLearnt) {
  for (int i = 0; i < 5; ++i) {
    access("MPI_File_write_at_all", 1.5);
    access("MPI_File_sync", 0.2);
    access("pread", 0.03);
    history.phase_over();
    now_s += 2;
  }
  EXPECT_NEAR(expected("MPI_File_write_at_all"), 1.5, 1e-6);
  EXPECT_NEAR(expected("MPI_File_sync"), 0.2, 1e-6);
  EXPECT_NEAR(expected("pread"), 0.03, 1e-6);
}

TEST_F(Accesses, WhatIsAskedTellsHowLongItTakesWhereItTellsWhatIsMoved) {
  for (int i = 0; i < 5; ++i) access("write", 0.1, 10'000'000);
  EXPECT_NEAR(expected("write", 15'000'000), 0.15, 1e-6);
}

TEST_F(Accesses, NothingIsKnownOfAKindThatWasNeverSeen) {
  EXPECT_FALSE(history.access(history.asked("read", nullptr, 100, true, after_1_s(0)), 100));
  EXPECT_FALSE(history.rest_of_phase_s());
}

TEST_F(Accesses, AHeaderDoesNotEndThePhase) {
  for (int i = 0; i < 4; ++i) {
    access("MPI_File_write_at", 0.001);
    access("MPI_File_write_at_all", 1);
    access("MPI_File_write_at_all", 1);
    history.phase_over();
    now_s += 3;
  }
  access("MPI_File_write_at", 0.001);
  EXPECT_NEAR(*history.rest_of_phase_s(), 2, 1e-6);
  access("MPI_File_write_at_all", 1);
  EXPECT_NEAR(*history.rest_of_phase_s(), 1, 1e-6);
  access("MPI_File_write_at_all", 1);
  EXPECT_NEAR(*history.rest_of_phase_s(), 0, 1e-6);
}

TEST_F(Accesses, TheGapIsWhatItUsuallyIsAndFollowsTheMachine) {
  const auto phase = [&](double gap_s) {
    access("write", 0.1);
    now_s += gap_s;
    access("write", 0.1);
    history.phase_over();
    now_s += 1;
  };
  for (int i = 0; i < 20; ++i) phase(0.002);
  access("write", 0.1);
  EXPECT_NEAR(history.gap()->mean_s, 0.002, 1e-6);
  EXPECT_LT(history.gap()->longest_s, 0.004);
  history.phase_over();
  for (int i = 0; i < 20; ++i) phase(0.03);
  access("write", 0.1);
  EXPECT_GT(history.gap()->longest_s, 0.03);
}

TEST_F(Accesses, AfterTheLastAccessOfAPhaseNoneIsExpected) {
  for (int i = 0; i < 8; ++i) {
    access("write", 0.1);
    access("MPI_File_sync", 0.1);
    history.phase_over();
    now_s += 1;
  }
  access("write", 0.1);
  EXPECT_GT(history.follows(), 0.9);
  access("MPI_File_sync", 0.1);
  EXPECT_LT(history.follows(), 0.1);
}

TEST_F(Accesses, WhatOthersCostIsLearntByTheirLoad) {
  for (int i = 0; i < 3; ++i) access("write", 1, 100);
  const auto beside_writes = access("write", 2, 100, 2, AccessLoad::write);
  ASSERT_TRUE(beside_writes.shown);
  EXPECT_NEAR(beside_writes.shown->contention.interference(), 2, 1e-6);
  const auto beside_reads = access("write", 1.1, 100, 1.1, AccessLoad::read);
  ASSERT_TRUE(beside_reads.shown);
  EXPECT_NEAR(beside_reads.shown->contention.interference(), 1.1, 1e-6);
  const std::size_t kind = history.asked("write", nullptr, 100, false, after_1_s(now_s));
  EXPECT_NEAR(history.interference(kind, AccessLoad::write), 2, 1e-6);
  EXPECT_NEAR(history.interference(kind, AccessLoad::read), 1.1, 1e-6);
  EXPECT_NEAR(history.access(kind, 100)->seconds, 1, 1e-6) << "what was shared says nothing of the time alone";
}

// An access takes 1 s alone, at half the speed beside others: 1.5 s with 1 s shared, 1.8 s with 1.6 s shared.
TEST_F(Accesses, TwoThatWereSharedTellWhatOneTakesAlone) {
  EXPECT_FALSE(access("write", 1.5, 0, 1).alone_s > 0);
  const auto second = access("write", 1.8, 0, 1.6);
  EXPECT_NEAR(second.alone_s, 1, 1e-6);
  ASSERT_TRUE(second.shown);
  EXPECT_NEAR(second.shown->contention.interference(), 2, 1e-6);
}

// Accesses of 110 and 150 MB overlap on a target of 100 MB/s: 2.2 s are shared, then 0.4 s alone.
TEST(RateFits, TwoThatOverlapTellTheRateOfOneAlone) {
  RateFit fit;
  fit.add(0, 2.2, 110e6);
  EXPECT_FALSE(fit.bytes_per_s()) << "one alone says nothing of the other rate";
  fit.add(0.4, 2.2, 150e6);
  ASSERT_TRUE(fit.bytes_per_s());
  EXPECT_NEAR(*fit.bytes_per_s(), 100e6, 1e3);
}

TEST(RateFits, WhatOverlapsAlikeOrDoesNotFitTellsNothing) {
  RateFit alike;
  for (int i = 0; i < 5; ++i) alike.add(0.01, 2, 100e6);
  EXPECT_FALSE(alike.bytes_per_s());
  RateFit unlike;
  for (const double rate : {1.0, 5.0, 0.3, 7.0}) {
    unlike.add(1, 0, rate * 100e6);
    unlike.add(0.2, 1, rate * 30e6);
  }
  EXPECT_FALSE(unlike.bytes_per_s());
}

TEST_F(Accesses, WhatTheRateTellsIsTakenWhereNothingBetterIsKnown) {
  told_s = 1.5;
  const auto first = access("write", 2.6, 150, 2.2);
  EXPECT_NEAR(first.alone_s, 1.5, 1e-6);
  EXPECT_NEAR(beside("write", 150), 2, 1e-6);
  EXPECT_FALSE(first.shown) << "what is supposed of one says nothing of the others";
  EXPECT_NEAR(expected("write", 150), 1.5, 1e-6);
}

// The application takes a quarter of the target's rate at most, so others do not slow it down.
TEST_F(Accesses, WhatWasSupposedIsForgottenOnceItIsMeasured) {
  told_s = 0.5;
  EXPECT_NEAR(access("write", 2, 150, 2).alone_s, 1, 1e-6) << "more than even shares cost is not lost to others";
  EXPECT_GT(beside("write", 150), 1);
  told_s = 0;
  access("write", 2, 150);
  EXPECT_NEAR(expected("write", 150), 2, 1e-6);
  EXPECT_NEAR(beside("write", 150), 1, 1e-6) << "the first one was as fast";
}

TEST_F(Accesses, OnceOneIsMeasuredAloneTheOneBeforeTellsWhatOthersCost) {
  EXPECT_FALSE(access("write", 3.4, 200, 2.8).shown);
  const auto alone = access("write", 1, 100);
  ASSERT_TRUE(alone.shown) << "200 bytes take 2 s alone, and took 1.4 s more in 2.8 s beside others";
  EXPECT_NEAR(alone.shown->contention.interference(), 2, 1e-6);
  EXPECT_NEAR(beside("write", 100), 2, 1e-6);
  EXPECT_FALSE(access("write", 1, 100).shown) << "it is counted once";
}

TEST_F(Accesses, AmongFewTheTargetIsSupposedToBeSharedEvenly) {
  EXPECT_FALSE(access("write", 2, 150, 2).alone_s > 0);
  even = true;
  EXPECT_NEAR(access("read", 2, 150, 1).alone_s, 1.5, 1e-6);
  EXPECT_NEAR(beside("read", 150), 2, 1e-6);
  access("read", 2, 150);
  EXPECT_NEAR(beside("read", 150), 1, 1e-6) << "it was not slowed down";
}

TEST_F(Accesses, WhatWasSupposedIsForgottenOnceTwoTellBetter) {
  told_s = 0.5;
  access("write", 1.99, 150, 1.99);
  told_s = 0;
  EXPECT_NEAR(access("write", 2, 150, 1).alone_s, 2, 1e-6) << "slightly faster beside others is not slower";
  EXPECT_NEAR(beside("write", 150), 1, 1e-6);
}

TEST_F(Accesses, TwoThatWereSharedAlikeTellNothing) {
  access("write", 9.5, 0, 9.5);
  EXPECT_FALSE(access("write", 8, 0, 7.9).alone_s > 0) << "the one was slower, and nobody knows why";
}

TEST_F(Accesses, BesideReadsAndWritesAtOnceIsBetterThanNothing) {
  access("write", 1, 100);
  Occupancy occupancy;
  occupancy.kind = history.asked("write", nullptr, 100, true, after_1_s(now_s));
  occupancy.asked = occupancy.bytes = 100;
  occupancy.since = after_1_s(now_s);
  occupancy.shared_s = 2;
  occupancy.others_s = {1, 1};
  now_s += 2;
  EXPECT_FALSE(history.ended(occupancy, after_1_s(now_s), {}).shown);
  EXPECT_NEAR(beside("write", 100), 2, 1e-6);
  access("write", 1, 100, 1, AccessLoad::write);
  EXPECT_NEAR(beside("write", 100), 1, 1e-6) << "beside writes alone it was seen to be as fast";
}

TEST_F(Accesses, MoreKindsThanAreKeptDoNoHarm) {
  for (int i = 0; i < 100; ++i) access(("routine " + std::to_string(i)).c_str(), 1);
  EXPECT_NEAR(expected("routine 3"), 1, 1e-6);
}

}  // namespace
}  // namespace hocket::model
