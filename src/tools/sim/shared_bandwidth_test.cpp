#include "sim/shared_bandwidth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sim/times_testing.hpp"

namespace hocket::sim {
namespace {

using testing::at;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

double seconds(Time t) { return to_s(t - Time{}); }

std::vector<SharedBandwidth::TransferNumber> ended_at(SharedBandwidth& target, Time now) {
  std::vector<SharedBandwidth::TransferNumber> ended;
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

// 100 bytes/s behind a cache of 300 bytes that takes 400 bytes/s: it is full after a second and 400 bytes.
class WriteCaches : public ::testing::TestWithParam<BandwidthSharing> {
 protected:
  SharedBandwidth target_{100, 1, GetParam(), {300, 400}};
};

TEST_P(WriteCaches, AWriterIsFastUntilTheCacheIsFull) {
  target_.start(at(0), 1000, 1000);
  EXPECT_EQ(target_.next_end(), at(1));
  EXPECT_THAT(ended_at(target_, at(1)), ElementsAre());
  EXPECT_EQ(target_.next_end(), at(7));
  EXPECT_THAT(ended_at(target_, at(7)), ElementsAre(0));
  EXPECT_EQ(target_.next_end(), Time::max());
}

TEST_P(WriteCaches, EmptyWhileNobodyWrites) {
  target_.start(at(0), 1000, 1000);
  ended_at(target_, at(1));
  ended_at(target_, at(7));
  target_.start(at(8.5), 200, 1000);  // 150 bytes are free, which is enough for 200
  EXPECT_EQ(target_.next_end(), at(9));
  // The cache is full after half a second at 400 bytes/s, as the transfer ends.
  EXPECT_THAT(ended_at(target_, at(9)), ElementsAre(0));
  target_.start(at(9), 100, 1000);
  EXPECT_EQ(target_.next_end(), at(10));
}

TEST_P(WriteCaches, OfTwoAtOnceNeitherBenefits) {
  target_.start(at(0), 400, 1000);
  target_.start(at(0), 400, 1000);
  EXPECT_THAT(ended_at(target_, at(1)), ElementsAre());
  EXPECT_EQ(target_.next_end(), at(5));
  EXPECT_EQ(ended_at(target_, at(5)).size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Sharing, WriteCaches, ::testing::Values(BandwidthSharing::fair, BandwidthSharing::queued));

TEST(SharedBandwidthTest, ACacheEmptiesBesideWritersThatAreSlowerThanTheDisks) {
  SharedBandwidth target{100, 1, BandwidthSharing::fair, {300, 400}};
  target.start(at(0), 400, 1000);
  EXPECT_THAT(ended_at(target, at(1)), ElementsAre(0));
  target.start(at(1), 1000, 50);
  target.start(at(3), 100, 1000);  // 100 bytes are free: it gets 350 bytes/s until it ends
  EXPECT_EQ(target.next_end(), at(3) + from_s(100.0 / 350) + Duration{1});
}

TEST(SharedBandwidthTest, QueuedTransfersThatOverlapEndTogether) {
  SharedBandwidth target{100, 1, BandwidthSharing::queued};
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
  EXPECT_EQ(target.next_end(), at(3));  // together they get 100 / 1.5
}

TEST(SharedBandwidthTest, WeightsShareInProportion) {
  SharedBandwidth target{100};
  const auto large = target.start(at(0), 900, 1000, 31);
  const auto small = target.start(at(0), 50, 1000, 1);
  EXPECT_DOUBLE_EQ(target.rate(large), 96.875);
  EXPECT_DOUBLE_EQ(target.rate(small), 3.125);
  target.set_weight(at(8), small, 31);
  EXPECT_DOUBLE_EQ(target.rate(small), 50);
  EXPECT_NEAR(target.left(at(8), small), 25, 1e-9);
  EXPECT_EQ(target.next_end(), at(8.5));
  EXPECT_THAT(ended_at(target, at(8.5)), ElementsAre(small));
  EXPECT_EQ(target.next_end(), at(9.5));
}

TEST(SharedBandwidthTest, NoWeightGivesMoreThanAMost) {
  SharedBandwidth target{100};
  const auto heavy = target.start(at(0), 100, 20, 50);
  const auto light = target.start(at(0), 100, 1000, 1);
  EXPECT_DOUBLE_EQ(target.rate(heavy), 20);
  EXPECT_DOUBLE_EQ(target.rate(light), 80);
  target.set_weight(at(0), heavy, 0.125);
  EXPECT_DOUBLE_EQ(target.rate(heavy), 100.0 / 9);
  EXPECT_DOUBLE_EQ(target.rate(light), 800.0 / 9);
}

// CALCioM, Fig. 7 (b): two small writers, one of which cannot use the target alone, take 1.4 times as long together.
TEST(SharedBandwidthTest, TwoThatUseSevenTenthsEachAloneTakeOnePointFourTimesTogether) {
  SharedBandwidth target{1000};
  target.start(at(0), 700, 700);
  EXPECT_EQ(target.next_end(), at(1));
  target.start(at(0), 700, 700);
  EXPECT_EQ(target.next_end(), at(1.4));
}

class BothKinds : public ::testing::TestWithParam<BandwidthSharing> {};

// A transfer that is stopped a thousand times at uneven times takes as long as without a stop.
TEST_P(BothKinds, WhatIsStoppedAndGoesOnLosesNothing) {
  SharedBandwidth target{1e9 / 3, 1, GetParam()};
  std::mt19937_64 random(7);
  double bytes = 1e12;
  Time now{};
  Duration in_transfer{};
  for (int i = 0; i < 1000; ++i) {
    const auto transfer = target.start(now, bytes, 1e12);
    const Duration passed{static_cast<std::int64_t>(random() % 2'000'000'000)};
    bytes = target.stop(now + passed, transfer);
    in_transfer += passed;
    now += passed + Duration{static_cast<std::int64_t>(random() % 1'000'000'000)};
    ASSERT_EQ(target.active(), 0U);
    ASSERT_EQ(target.next_end(), Time::max());
  }
  target.start(now, bytes, 1e12);
  EXPECT_NEAR(to_s(target.next_end() - now + in_transfer), 3000, 1e-9);
  EXPECT_EQ(target.busy(), in_transfer);
}

TEST_P(BothKinds, StoppingOneLeavesTheTargetToTheOthers) {
  SharedBandwidth target{100, 1, GetParam()};
  const auto a = target.start(at(0), 400, 1000);
  target.start(at(0), 400, 1000);
  const auto c = target.start(at(0), 400, 1000);
  EXPECT_NEAR(target.stop(at(3), a), 300, 1e-9);
  EXPECT_NEAR(target.left(at(5), c), 200, 1e-9);
  EXPECT_EQ(target.next_end(), at(9));
  EXPECT_EQ(ended_at(target, at(9)).size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Sharings, BothKinds, ::testing::Values(BandwidthSharing::fair, BandwidthSharing::queued));

// Another transfer always comes before the others end: what is left of the first ones shrinks, but is never negative.
TEST(SharedBandwidthTest, AQueueThatIsNeverEmptyKeepsItsSum) {
  SharedBandwidth target{100, 1, BandwidthSharing::queued};
  auto first = target.start(at(0), 100, 1000);
  for (int i = 0; i < 2000; ++i) {
    target.start(at(0.999 * (i + 1)), 99.9, 1000);
    ASSERT_NEAR(seconds(target.next_end()), 0.999 * (i + 1) + 1, 1e-9) << i;
  }
  EXPECT_GE(target.left(at(2000), first), 0);
  EXPECT_LT(target.left(at(2000), first), 1e-300);
}

// ---- against a simple model ----------------------------------------------------------------------------------------

struct Simple {
  double most, left, weight;
};

// Max-min fairness by its definition. The transfer with the smallest maximum for its weight comes first. It gets its
// part of what is left, or its maximum.
std::vector<double> fair_rates(double bandwidth, double interference, const std::vector<Simple>& transfers) {
  std::vector<std::size_t> order(transfers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto level = [&](std::size_t i) { return transfers[i].most / transfers[i].weight; };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return level(a) < level(b); });
  double weights = 0;
  for (const Simple& transfer : transfers) weights += transfer.weight;
  const auto n = static_cast<double>(transfers.size());
  double left = n > 1 ? bandwidth / (1 + (interference - 1) * (n - 1) / n) : bandwidth;
  std::vector<double> rates(transfers.size());
  for (const std::size_t i : order) {
    rates[i] = std::min(transfers[i].most, left * transfers[i].weight / weights);
    left -= rates[i];
    weights -= transfers[i].weight;
  }
  return rates;
}

class AgainstASimpleModel : public ::testing::TestWithParam<int> {};

// Random arrivals; every third seed adds random weights, changes of them and stops. After each event the rates agree
// with the definition. Each transfer ends when the integral of its rate is its size, so no byte is lost or invented.
TEST_P(AgainstASimpleModel, RatesAndEndsAgree) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution{low, high}(random); };
  const double interference = GetParam() % 3 == 0 ? 1.5 : 1;
  const bool equal_most = GetParam() % 2 == 0;
  const bool weighted = GetParam() % 3 == 1;
  const auto weight = [&] { return weighted ? std::exp2(draw(-4, 8)) : 1.0; };
  SharedBandwidth target{1000, interference};
  std::vector<Simple> model;
  std::vector<SharedBandwidth::TransferNumber> numbers;
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
      continue;
    }
    const auto picked = static_cast<std::size_t>(draw(0, static_cast<double>(model.size())));
    if (weighted && picked < model.size() && event % 3 == 0) {
      model[picked].weight = weight();
      target.set_weight(at(now), numbers[picked], model[picked].weight);
    } else if (weighted && picked < model.size() && event % 7 == 1) {
      ASSERT_NEAR(target.stop(at(now), numbers[picked]), model[picked].left, 1e-3);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(picked));
      numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(picked));
    } else {
      model.push_back({equal_most ? 150 : draw(10, 1500), draw(1, 700), weight()});
      numbers.push_back(target.start(at(now), model.back().left, model.back().most, model.back().weight));
    }
  }
  EXPECT_GT(ends, 100U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstASimpleModel, ::testing::Range(0, 24));

}  // namespace
}  // namespace hocket::sim
