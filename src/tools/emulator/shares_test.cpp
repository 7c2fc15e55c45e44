#include "emulator/shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hocket::emulator {
namespace {

TEST(Factors, AreLinearInTheLogarithmsBetweenPoints) {
  const Factors factors{{2, 0.6}, {8, 0.15}};
  EXPECT_DOUBLE_EQ(factor_at(factors, 2), 0.6);
  EXPECT_DOUBLE_EQ(factor_at(factors, 8), 0.15);
  EXPECT_NEAR(factor_at(factors, 4), 0.3, 1e-12);
  EXPECT_DOUBLE_EQ(factor_at(factors, 1), 1.2) << "below the first point work is divided evenly";
  EXPECT_DOUBLE_EQ(factor_at(factors, 64), 0.15);
}

TEST(Factors, AStageWithoutItsOwnHasThoseOfTheGroups) {
  EmulationPlan plan;
  plan.groups = {{1, 5, 1.0, "", false}, {4, 5, 0.25, "", false}, {1, 5, 2.0, "", false}};
  Stage stage;
  EXPECT_DOUBLE_EQ(factor_of(stage, plan, 0, 1), 1.0);
  EXPECT_DOUBLE_EQ(factor_of(stage, plan, 12, 1), 2.0) << "the last group of that size that has begun";
  EXPECT_DOUBLE_EQ(factor_of(stage, plan, 6, 2), std::sqrt(0.5)) << "a size that the plan does not have";
  stage.factors = {{1, 3.0}};
  EXPECT_DOUBLE_EQ(factor_of(stage, plan, 0, 1), 3.0);
}

TEST(Shares, HaveTheImbalanceThatIsGiven) {
  for (const auto distribution : {ShareDistribution::linear, ShareDistribution::one, ShareDistribution::random}) {
    for (const int processes : {1, 2, 3, 8, 64}) {
      for (const double imbalance : {1.0, 1.2, 1.9}) {
        Stage stage;
        stage.imbalance = imbalance;
        stage.distribution = distribution;
        const auto shares = shares_of(stage, processes, 5, 3);
        ASSERT_EQ(shares.size(), static_cast<std::size_t>(processes));
        EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-9);
        EXPECT_GE(*std::min_element(shares.begin(), shares.end()), 0);
        const double most = *std::max_element(shares.begin(), shares.end()) * processes;
        EXPECT_NEAR(most, processes == 1 ? 1 : imbalance, 1e-6) << processes << " processes";
      }
    }
  }
}

TEST(Shares, ThoseThatAreGivenCountAtTheirSize) {
  Stage stage;
  stage.shares = {{0.25, 0.75}};
  EXPECT_EQ(shares_of(stage, 2, 1, 0), stage.shares[0]);
  EXPECT_EQ(shares_of(stage, 4, 1, 0), std::vector<double>(4, 0.25));
}

TEST(Shares, DrawnOnesFollowFromTheSeed) {
  Stage stage;
  stage.imbalance = 3;
  stage.distribution = ShareDistribution::random;
  EXPECT_EQ(shares_of(stage, 8, 1, 0), shares_of(stage, 8, 1, 0));
  EXPECT_NE(shares_of(stage, 8, 1, 0), shares_of(stage, 8, 2, 0));
  EXPECT_NE(shares_of(stage, 8, 1, 0), shares_of(stage, 8, 1, 1));
}

TEST(Parts, DivideAllBytesByShares) {
  EXPECT_EQ(parts_of(10, {0.25, 0.75}), (std::vector<std::int64_t>{3, 7}));
  EXPECT_EQ(parts_of(1, {0.5, 0.5}), (std::vector<std::int64_t>{1, 0}));
  for (std::int64_t bytes = 0; bytes < 50; bytes++) {
    for (const int processes : {1, 2, 3, 7}) {
      const auto parts = parts_of(bytes, std::vector<double>(static_cast<std::size_t>(processes), 1.0 / processes));
      EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}), bytes);
      const auto [least, most] = std::minmax_element(parts.begin(), parts.end());
      EXPECT_LE(*most - *least, 1);
    }
  }
}

TEST(Data, EachRankHasItsShareAndTogetherAll) {
  EmulationPlan plan;
  plan.data.shares = {{0, 1}, {0.5, 0, 0.25, 0.25}};
  EXPECT_EQ(data_extent(plan, 1000, 2, 0).count, 0);
  EXPECT_EQ(data_extent(plan, 1000, 4, 0).count, 500);
  EXPECT_EQ(data_extent(plan, 1000, 4, 1).count, 0);
  EXPECT_EQ(data_extent(plan, 1000, 4, 3).first, 750);
  plan.data.imbalance = 1.7;
  for (const auto distribution : {ShareDistribution::linear, ShareDistribution::one, ShareDistribution::random}) {
    plan.data.distribution = distribution;
    std::int64_t next = 0;
    for (int rank = 0; rank < 7; rank++) {
      const DataExtent extent = data_extent(plan, 1001, 7, rank);
      EXPECT_EQ(extent.first, next);
      next += extent.count;
    }
    EXPECT_EQ(next, 1001);
  }
}

TEST(Jitter, HasItsMeanAndDeviation) {
  double sum = 0, squares = 0;
  constexpr int draws = 20000;
  for (int draw = 0; draw < draws; draw++) {
    const double value = jitter_of(0.1, 1, 2, draw / 4, draw % 4);
    EXPECT_GE(value, 0);
    sum += value;
    squares += (value - 1) * (value - 1);
  }
  EXPECT_NEAR(sum / draws, 1, 0.003);
  EXPECT_NEAR(std::sqrt(squares / draws), 0.1, 0.003);
  EXPECT_EQ(jitter_of(0, 1, 2, 3, 4), 1);
  EXPECT_EQ(jitter_of(0.1, 1, 2, 3, 4), jitter_of(0.1, 1, 2, 3, 4));
}

}  // namespace
}  // namespace hocket::emulator
