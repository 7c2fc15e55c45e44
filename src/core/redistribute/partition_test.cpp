#include "redistribute/partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace hocket::redistribute {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> bounds_of(const Partition& partition) {
  return {partition.bounds().begin(), partition.bounds().end()};
}

TEST(Partition, BlockGivesTheLargerSharesToTheFirst) {
  EXPECT_THAT(bounds_of(Partition::block(10, 4)), ElementsAre(0, 3, 6, 8, 10));
  EXPECT_THAT(bounds_of(Partition::block(8, 2)), ElementsAre(0, 4, 8));
}

TEST(Partition, BlockOfFewerElementsThanPartsHasEmptyParts) {
  EXPECT_THAT(bounds_of(Partition::block(2, 4)), ElementsAre(0, 1, 2, 2, 2));
  EXPECT_THAT(bounds_of(Partition::block(0, 3)), ElementsAre(0, 0, 0, 0));
}

TEST(Partition, BlockOfTheLongestArray) {
  constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  const Partition partition = Partition::block(longest, 3);
  EXPECT_EQ(partition.length(), longest);
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(static_cast<double>(partition.part(k).count()), 0x1p63 / 3, 0x1p12);
}

TEST(Partition, WithoutPartsIsEmpty) {
  EXPECT_EQ(Partition{}.parts(), 0);
  EXPECT_EQ(Partition{}.length(), 0);
}

TEST(Partition, WeightedSharesGoByWeight) {
  EXPECT_THAT(bounds_of(Partition::weighted(100, std::vector<double>{1, 3})), ElementsAre(0, 25, 100));
  // The quotas are 3.33 each, so the first of equals gets the rest.
  EXPECT_THAT(bounds_of(Partition::weighted(10, std::vector<double>{2, 2, 2})), ElementsAre(0, 4, 7, 10));
}

TEST(Partition, WeightsThatAreNoneCountAsTheSmallest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Partition::weighted(90, std::vector<double>{0, nan, -5, infinite, 2, 4}),
            Partition::weighted(90, std::vector<double>{2, 2, 2, 2, 2, 4}));
  EXPECT_EQ(Partition::weighted(11, std::vector<double>{0, nan, -1}), Partition::block(11, 3));
}

TEST(Partition, WeightedOfTheLongestArrayAndOfTheLargestWeights) {
  constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  const double largest = std::numeric_limits<double>::max();
  const Partition partition = Partition::weighted(longest, std::vector<double>{largest, largest, largest});
  EXPECT_EQ(partition.length(), longest);
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(static_cast<double>(partition.part(k).count()), 0x1p63 / 3, 0x1p12);
}

TEST(Partition, WeightedSharesAreOffByLessThanOneElement) {
  std::mt19937_64 random{11};
  for (int run = 0; run < 2000; ++run) {
    std::vector<double> weights(1 + random() % 12);
    for (double& w : weights) w = std::exp(std::uniform_real_distribution<>{-6, 6}(random));
    const auto length = static_cast<std::int64_t>(random() % (run % 2 == 0 ? 40 : 1'000'000'000'000));
    const Partition partition = Partition::weighted(length, weights);
    ASSERT_EQ(partition.parts(), static_cast<int>(weights.size()));
    ASSERT_EQ(partition.length(), length);
    double total = 0;
    for (const double w : weights) total += w;
    for (int k = 0; k < partition.parts(); ++k) {
      const double quota = weights[static_cast<std::size_t>(k)] / total * static_cast<double>(length);
      ASSERT_LT(std::abs(static_cast<double>(partition.part(k).count()) - quota), 1.001) << "run " << run;
    }
  }
}

}  // namespace
}  // namespace hocket::redistribute
