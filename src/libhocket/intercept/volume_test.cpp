#include "intercept/volume.hpp"

#include <gtest/gtest.h>

namespace hocket::runtime::posix {
namespace {

constexpr Duration gap = std::chrono::milliseconds{100};

Time at(double s) { return Time{from_s(s)}; }

TEST(Volume, ALargeAccessCountsAtOnce) {
  Volume volume;
  EXPECT_TRUE(volume.counts(worth_asking_bytes, at(1), gap));
}

TEST(Volume, SmallOnesCountOnceTheyAddUp) {
  Volume volume;
  for (int i = 0; i < 15; ++i) {
    EXPECT_FALSE(volume.counts(worth_asking_bytes / 16, at(1 + 0.05 * i), gap)) << i;
    volume.passed(at(1.01 + 0.05 * i));
  }
  EXPECT_TRUE(volume.counts(worth_asking_bytes / 16, at(1.75), gap));
  EXPECT_FALSE(volume.counts(worth_asking_bytes - 1, at(1.8), gap)) << "from the start";
}

TEST(Volume, ALogNeverCounts) {
  Volume volume;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(volume.counts(worth_asking_bytes / 2, at(i), gap)) << i;
    volume.passed(at(i));
  }
}

TEST(Volume, AnAccessThatTakesLongIsNoPause) {
  Volume volume;
  EXPECT_FALSE(volume.counts(worth_asking_bytes / 2, at(1), gap));
  volume.passed(at(2));
  EXPECT_TRUE(volume.counts(worth_asking_bytes / 2, at(2), gap));
}

TEST(Volume, AnyNumberMayBeAskedFor) {
  Volume volume;
  EXPECT_FALSE(volume.counts(1, at(1), gap));
  volume.passed(at(1));
  EXPECT_TRUE(volume.counts(INT64_MAX, at(1), gap));
  EXPECT_TRUE(volume.counts(INT64_MAX, at(1), gap));
  EXPECT_FALSE(volume.counts(1, at(1), gap));
}

TEST(Volume, WhatFollowsWithinTheGapCounts) {
  Volume volume;
  ASSERT_TRUE(volume.counts(worth_asking_bytes, at(1), gap));
  volume.counted(at(2), gap);
  EXPECT_TRUE(volume.counts(1, at(2.05), gap));
  volume.counted(at(2.06), gap);
  EXPECT_TRUE(volume.counts(1, at(2.15), gap));
  EXPECT_FALSE(volume.counts(1, at(2.17), gap));
}

TEST(Volume, ASyncIsAboutWhatWasWrittenBefore) {
  Volume volume;
  volume.written(worth_asking_bytes - 1);
  EXPECT_FALSE(volume.sync_counts(at(1)));
  volume.written(worth_asking_bytes - 1);
  volume.written(1);
  EXPECT_TRUE(volume.sync_counts(at(2)));
  EXPECT_FALSE(volume.sync_counts(at(3))) << "there is nothing left to sync";
  volume.counted(at(3), gap);
  EXPECT_TRUE(volume.sync_counts(at(3.05)));
}

}  // namespace
}  // namespace hocket::runtime::posix
