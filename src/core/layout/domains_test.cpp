#include "layout/domains.hpp"

#include <gtest/gtest.h>

#include "layout/model_testing.hpp"

namespace hocket::layout {
namespace {

using namespace testing;

Domains valid_domains(Extent file, int aggregators, std::int64_t block) {
  Result<Domains> domains = Domains::make(file, aggregators, block);
  EXPECT_TRUE(domains.ok());
  return std::move(domains).value();
}

TEST(Domains, BoundsAreMultiplesOfTheBlock) {
  const Domains domains = valid_domains({100, 1000}, 3, 256);
  EXPECT_EQ(domains.domain(0), (Extent{100, 512}));
  EXPECT_EQ(domains.domain(1), (Extent{512, 768}));
  EXPECT_EQ(domains.domain(2), (Extent{768, 1000}));
}

TEST(Domains, MoreAggregatorsThanBlocks) {
  const Domains domains = valid_domains({0, 10}, 4, 8);
  EXPECT_EQ(domains.domain(0), (Extent{0, 8}));
  EXPECT_EQ(domains.domain(1), (Extent{8, 10}));
  EXPECT_EQ(domains.domain(2).count() + domains.domain(3).count(), 0);
  EXPECT_EQ(valid_domains({5, 5}, 2, 8).domain(1).count(), 0);
}

TEST(Domains, CoverTheIntervalInEqualShares) {
  Random random(21);
  for (int trial = 0; trial < 2000; ++trial) {
    SCOPED_TRACE(trial);
    const std::int64_t first = draw(random, 0, 500);
    const std::int64_t block = draw(random, 1, 40);
    const int aggregators = static_cast<int>(draw(random, 1, 9));
    const Domains domains = valid_domains({first, draw(random, first, 900)}, aggregators, block);
    std::int64_t offset = first;
    for (int k = 0; k < aggregators; ++k) {
      const Extent domain = domains.domain(k);
      ASSERT_EQ(domain.first, offset);
      ASSERT_LE(domain.count(), (domains.file().count() / block / aggregators + 2) * block);
      ASSERT_TRUE(domain.end == domains.file().end || domain.end % block == 0);
      for (; offset < domain.end; ++offset) ASSERT_EQ(domains.owner(offset), k);
    }
    ASSERT_EQ(offset, domains.file().end);
  }
}

TEST(Domains, OfTheLargestFile) {
  const Domains domains = valid_domains({3, limit}, 7, std::int64_t{1} << 61);
  EXPECT_EQ(domains.domain(6).end, limit);
  EXPECT_EQ(domains.owner(limit - 1), 1);
  EXPECT_EQ(valid_domains({0, limit}, 1000, 1).domain(999).end, limit);
  EXPECT_EQ(valid_domains({5, 9}, 2, limit).domain(0), (Extent{5, 9}));
}

TEST(Domains, WhatIsNotValidIsAnError) {
  EXPECT_FALSE(Domains::make({-1, 5}, 1, 1).ok());
  EXPECT_FALSE(Domains::make({5, 4}, 1, 1).ok());
  EXPECT_FALSE(Domains::make({0, limit + 1}, 1, 1).ok());
  EXPECT_FALSE(Domains::make({0, 5}, 0, 1).ok());
  EXPECT_FALSE(Domains::make({0, 5}, 1, 0).ok());
}

}  // namespace
}  // namespace hocket::layout
