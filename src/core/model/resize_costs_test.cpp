#include "model/resize_costs.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hocket::model {
namespace {

const std::string method = "merge plain, collective blocking";

ResizeKind grow(std::int64_t started, const std::string& by = method) { return {8, 8 + started, started, by}; }
ResizeKind shrink(std::int64_t by) { return {8 + by, 8, 0, method}; }

TEST(ResizeCosts, KnowNothingBeforeTheFirst) {
  const ResizeCosts costs;
  EXPECT_TRUE(costs.empty());
  EXPECT_FALSE(costs.expected(grow(4)));
}

TEST(ResizeCosts, TellGrowingFromShrinking) {
  ResizeCosts costs;
  costs.add(grow(4), from_s(8));
  costs.add(shrink(4), from_s(1));
  EXPECT_DOUBLE_EQ(costs.expected(grow(4))->value, 8);
  EXPECT_DOUBLE_EQ(costs.expected(shrink(4))->value, 1);
  EXPECT_EQ(costs.resizes(), 2);
  EXPECT_EQ(costs.stopped(), from_s(9));
}

TEST(ResizeCosts, OfOneDirectionSpeakForTheOtherUntilThatIsSeen) {
  ResizeCosts costs;
  costs.add(grow(4), from_s(8));
  EXPECT_DOUBLE_EQ(costs.expected(shrink(4))->value, 8);
}

TEST(ResizeCosts, TellMethodsApart) {
  ResizeCosts costs;
  costs.add(grow(4), from_s(8));
  costs.add(grow(4, "baseline"), from_s(20));
  EXPECT_DOUBLE_EQ(costs.expected(grow(4))->value, 8);
  EXPECT_DOUBLE_EQ(costs.expected(grow(4, "baseline"))->value, 20);
  EXPECT_DOUBLE_EQ(costs.expected(grow(4, "other"))->value, 14) << "the mean of what growing took";
}

TEST(ResizeCosts, RiseWithTheProcessesStarted) {
  ResizeCosts costs;
  for (const std::int64_t started : {2, 4, 8}) costs.add(grow(started), from_s(1 + 0.5 * double(started)));
  EXPECT_NEAR(costs.expected(grow(16))->value, 9, 1e-6);
  EXPECT_NEAR(costs.expected(grow(16))->uncertainty, 0, 1e-6);
  EXPECT_NEAR(costs.expected(grow(0))->value, 1, 1e-6);
}

TEST(ResizeCosts, NeverFallWithTheProcessesStarted) {
  ResizeCosts costs;
  costs.add(grow(2), from_s(3));
  costs.add(grow(8), from_s(1));
  EXPECT_DOUBLE_EQ(costs.expected(grow(100))->value, 2);
}

TEST(ResizeCosts, SayHowFarTheyVary) {
  ResizeCosts costs;
  std::mt19937_64 random{1};
  std::normal_distribution<double> normal{5, 0.5};
  for (int i = 0; i < 32; ++i) costs.add(grow(4), from_s(normal(random)));
  EXPECT_NEAR(costs.expected(grow(4))->value, 5, 0.4);
  EXPECT_NEAR(costs.expected(grow(4))->uncertainty, 1, 0.4);
}

TEST(ResizeCosts, ForgetTheOldest) {
  ResizeCosts costs;
  costs.add(grow(4), from_s(1000));
  for (std::size_t i = 0; i < ResizeCosts::capacity; ++i) costs.add(grow(4), from_s(2));
  EXPECT_DOUBLE_EQ(costs.expected(grow(4))->value, 2);
  EXPECT_EQ(costs.resizes(), 33);
}

TEST(ResizeCosts, TakeImpossibleNumbersForTheNearestPossible) {
  ResizeCosts costs;
  costs.add({-3, 5, -7, ""}, from_s(-2));
  EXPECT_DOUBLE_EQ(costs.expected({1, 2, 1, ""})->value, 0);
}

}  // namespace
}  // namespace hocket::model
