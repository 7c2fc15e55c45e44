#include "collective_plan/slow_aggregators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/splitmix.hpp"

namespace hocket::collective_plan {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr std::int64_t mebibyte = 1 << 20;

class SlowAggregatorsTest : public ::testing::Test {
 protected:
  // One access a 100 ms: each aggregating rank makes four file accesses of `ms` each, the slow one of `slow_ms`.
  std::vector<int> access(int slow, int slow_ms = 20, int ms = 2) {
    aggregators = domains.keep(chosen);
    now += milliseconds{100};
    std::vector<AggregatorWork> work(8);
    for (const int rank : aggregators)
      work[static_cast<std::size_t>(rank)] = {4, 4 * mebibyte, 4 * milliseconds{rank == slow ? slow_ms : ms}};
    for (const SlowAggregators::Slow& one : domains.take(work, now)) found.push_back(one);
    return aggregators;
  }

  SlowAggregators domains;
  std::vector<int> chosen{0, 2, 4, 6};
  std::vector<int> aggregators;
  Time now = Time{} + seconds{1000};
  std::vector<SlowAggregators::Slow> found;
};

TEST_F(SlowAggregatorsTest, ASlowOneLosesItsDomainAtTheNextControlPoint) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(access(4), ElementsAre(0, 2, 4, 6)) << "access " << i;
  EXPECT_THAT(access(4), ElementsAre(0, 2, 6));
  ASSERT_EQ(found.size(), 1U) << "it is reported once";
  EXPECT_EQ(found[0].rank, 4);
  EXPECT_EQ(found[0].service, milliseconds{20});
  EXPECT_EQ(found[0].peers, milliseconds{2});
  EXPECT_EQ(found[0].hold_off, seconds{10});
}

TEST_F(SlowAggregatorsTest, ItReturnsAfterAHoldOffThatDoubles) {
  while (access(4).size() == 4) continue;
  now += seconds{9};
  EXPECT_THAT(access(4), ElementsAre(0, 2, 6));
  now += seconds{1};
  access(4);  // its end is after the hold-off
  EXPECT_THAT(access(4), ElementsAre(0, 2, 4, 6));
  while (access(4).size() == 4) continue;
  now += seconds{15};
  access(4);
  EXPECT_THAT(access(4), ElementsAre(0, 2, 6));
  now += seconds{5};
  access(4);
  EXPECT_THAT(access(4), ElementsAre(0, 2, 4, 6));
}

TEST_F(SlowAggregatorsTest, OfTwoTheSlowOneIsFiveTimesAsSlow) {
  chosen = {0, 4};
  for (int i = 0; i < 20; ++i) EXPECT_THAT(access(4, 10), ElementsAre(0, 4)) << "five times";
  while (access(4, 11).size() == 2) ASSERT_LT(now, Time{} + seconds{1010});
  EXPECT_EQ(found.back().rank, 4);
  for (int i = 0; i < 20; ++i) EXPECT_THAT(access(0), ElementsAre(0)) << "the last one keeps its domain";
}

TEST_F(SlowAggregatorsTest, OfOneNoneIsSlow) {
  chosen = {4};
  for (int i = 0; i < 20; ++i) EXPECT_THAT(access(4), ElementsAre(4));
}

// On cores with many threads, a file access of equal aggregators varies by more than its mean.
TEST_F(SlowAggregatorsTest, TwoEqualOnesKeepTheirDomainsUnderHeavyNoise) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> noise(0, 0.7);
  int out = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::vector<int> kept = domains.keep(std::vector<int>{0, 4});
    out += kept.size() < 2;
    std::vector<AggregatorWork> work(8);
    for (const int rank : kept)
      work[static_cast<std::size_t>(rank)] = {4, 4 * mebibyte, Duration{std::int64_t(8e6 * noise(random))}};
    domains.take(work, now += milliseconds{100});
  }
  EXPECT_LE(out, 200) << "of 20,000 accesses: two hold-offs of 10 s";
}

TEST_F(SlowAggregatorsTest, EqualOnesKeepTheirDomainsUnderNoise) {
  std::uint64_t state = 3;
  for (int i = 0; i < 500; ++i) {
    aggregators = domains.keep(chosen);
    ASSERT_THAT(aggregators, ElementsAre(0, 2, 4, 6)) << "access " << i;
    std::vector<AggregatorWork> work(8);
    for (const int rank : chosen)
      work[static_cast<std::size_t>(rank)] = {
          4, 4 * mebibyte, milliseconds{4 + static_cast<std::int64_t>(splitmix(state += splitmix_step) % 3)}};
    domains.take(work, now += milliseconds{100});
  }
}

TEST_F(SlowAggregatorsTest, OneRemainsWhateverIsSlow) {
  chosen = {0, 2, 4};
  for (int slow : {0, 2, 4, 0, 2, 4})
    for (int i = 0; i < 8; ++i) ASSERT_GE(access(slow).size(), 1U);
}

}  // namespace
}  // namespace hocket::collective_plan
