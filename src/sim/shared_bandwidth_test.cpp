#include "sim/shared_bandwidth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hocket::sim {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

Time at(double seconds) { return Time{} + from_s(seconds); }
double seconds(Time t) { return to_s(t - Time{}); }

std::vector<SharedBandwidth::Transfer> ended_at(SharedBandwidth& target, Time now) {
  std::vector<SharedBandwidth::Transfer> ended;
  target.take_ended(now, ended);
  return ended;
}

TEST(SharedBandwidthTest, OneAloneGetsAllOrItsMost) {
  SharedBandwidth target{100};
  target.start(at(0), 200, 1000);
  EXPECT_EQ(target.next_end(), at(2));
  EXPECT_THAT(ended_at(target, at(2)), ElementsAre(0));
  target.start(at(2), 200, 50);
  EXPECT_EQ(target.next_end(), at(6));
  EXPECT_THAT(ended_at(target, at(6)), ElementsAre(0));
  EXPECT_EQ(target.next_end(), Time::max());
  EXPECT_EQ(target.busy(), from_s(6));
  EXPECT_EQ(target.overlap(), Duration{});
}

TEST(SharedBandwidthTest, WhatALimitedOneLeavesIsShared) {
  SharedBandwidth target{100};
  const auto small = target.start(at(0), 1000, 10);
  const auto a = target.start(at(0), 90, 1000);
  const auto b = target.start(at(0), 900, 1000);
  EXPECT_DOUBLE_EQ(target.rate(small), 10);
  EXPECT_DOUBLE_EQ(target.rate(a), 45);
  EXPECT_EQ(target.next_end(), at(2));
  EXPECT_THAT(ended_at(target, at(2)), ElementsAre(a));
  EXPECT_DOUBLE_EQ(target.rate(b), 90);
  EXPECT_EQ(target.overlap(), from_s(2));
}

TEST(SharedBandwidthTest, AnArrivalPutsTheEndOff) {
  SharedBandwidth target{100};
  target.start(at(0), 100, 1000);
  target.start(at(0.5), 100, 1000);
  EXPECT_EQ(target.next_end(), at(1.5));
  EXPECT_THAT(ended_at(target, at(1.5)), ElementsAre(0));
  EXPECT_EQ(target.next_end(), at(2));
}

TEST(SharedBandwidthTest, QueuedTransfersThatOverlapEndTogether) {
  SharedBandwidth target{100, 1, Sharing::queued};
  target.start(at(0), 100, 1000);
  target.start(at(0.5), 100, 1000);
  EXPECT_EQ(target.next_end(), at(2));
  EXPECT_THAT(ended_at(target, at(2)), ElementsAre(0, 1));
  EXPECT_EQ(target.next_end(), Time::max());
  EXPECT_EQ(target.busy(), from_s(2));
  EXPECT_EQ(target.overlap(), from_s(1.5));
}

TEST(SharedBandwidthTest, InterferenceCostsAllThatWriteAtOnce) {
  SharedBandwidth target{100, 2};
  target.start(at(0), 100, 1000);
  target.start(at(0), 100, 1000);
  EXPECT_EQ(target.next_end(), at(3));  // together 100 / 1.5
}

// ---- against a simple model ----------------------------------------------------------------------------------------

struct Simple {
  double most, left;
};

// Max-min by its definition: the one that can use least first gets an equal part of what is left, or its most.
std::vector<double> fair_rates(double bandwidth, double interference, const std::vector<Simple>& transfers) {
  std::vector<std::size_t> order(transfers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return transfers[a].most < transfers[b].most; });
  const auto n = static_cast<double>(transfers.size());
  double left = n > 1 ? bandwidth / (1 + (interference - 1) * (n - 1) / n) : bandwidth;
  std::vector<double> rates(transfers.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rates[order[i]] = std::min(transfers[order[i]].most, left / static_cast<double>(order.size() - i));
    left -= rates[order[i]];
  }
  return rates;
}

class AgainstASimpleModel : public testing::TestWithParam<int> {};

// Random arrivals; after each event the rates agree with the definition, and each transfer ends when the integral of
// its rate is its size: nothing is lost or made up.
TEST_P(AgainstASimpleModel, RatesAndEndsAgree) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution{low, high}(random); };
  const double interference = GetParam() % 3 == 0 ? 1.5 : 1;
  const bool equal_most = GetParam() % 2 == 0;
  SharedBandwidth target{1000, interference};
  std::vector<Simple> model;
  std::vector<SharedBandwidth::Transfer> numbers;
  double now = 0;
  std::size_t ends = 0;
  for (int event = 0; event < 600; ++event) {
    const double arrival = now + draw(0, 1);
    const Time end = target.next_end();
    const double next = std::min(arrival, seconds(end));
    const std::vector<double> rates = fair_rates(1000, interference, model);
    for (std::size_t i = 0; i < model.size(); ++i) {
      ASSERT_NEAR(target.rate(numbers[i]), rates[i], 1e-6);
      model[i].left -= rates[i] * (next - now);
      ASSERT_GE(model[i].left, -1e-3);
    }
    now = next;
    if (seconds(end) <= arrival) {
      const auto ended = ended_at(target, end);
      ASSERT_FALSE(ended.empty());
      for (const auto number : ended) {
        const auto i = std::find(numbers.begin(), numbers.end(), number) - numbers.begin();
        ASSERT_THAT(model.at(static_cast<std::size_t>(i)).left, DoubleNear(0, 1e-3));
        model.erase(model.begin() + i);
        numbers.erase(numbers.begin() + i);
        ++ends;
      }
    } else {
      model.push_back({equal_most ? 150 : draw(10, 1500), draw(1, 700)});
      numbers.push_back(target.start(at(now), model.back().left, model.back().most));
    }
  }
  EXPECT_GT(ends, 100U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstASimpleModel, testing::Range(0, 24));

}  // namespace
}  // namespace hocket::sim
