#include "redistribute/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace hocket::redistribute {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Plan, GrowthByMergeKeepsWhatStays) {
  const Roles roles{{0, 1}, {0, 1, 2, 3}};
  const Partition before = Partition::block(8, 2);
  const Partition after = Partition::block(8, 4);
  const RedistributionPlan first = plan(before, after, roles, 0);
  EXPECT_THAT(first.kept, ElementsAre(KeptElements{0, 0, 2}));
  EXPECT_THAT(first.sends, ElementsAre(Message{1, {{2, 4}}}));
  EXPECT_THAT(first.receives, IsEmpty());
  const RedistributionPlan second = plan(before, after, roles, 1);
  EXPECT_THAT(second.kept, IsEmpty());
  EXPECT_THAT(second.sends, ElementsAre(Message{2, {{0, 2}}}, Message{3, {{2, 4}}}));
  EXPECT_THAT(second.receives, ElementsAre(Message{0, {{0, 2}}}));
}

TEST(Plan, BlocksOfOnePeerAreOneMessage) {
  const RedistributionPlan mine =
      plan(ElementDistribution::cyclic(12, 2, 2), Partition::block(12, 2), {{0, 1}, {0, 1}}, 0);
  // Elements 0, 1, 4, 5, 8 and 9 before, 0 to 5 after.
  EXPECT_THAT(mine.kept, ElementsAre(KeptElements{0, 0, 2}, KeptElements{2, 4, 2}));
  EXPECT_THAT(mine.sends, ElementsAre(Message{1, {{4, 6}}}));
  EXPECT_THAT(mine.receives, ElementsAre(Message{1, {{2, 4}}}));
}

TEST(Plan, SharesOfTheLongestArray) {
  constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  const RedistributionPlan mine = plan(Partition::block(longest, 1), Partition::block(longest, 2), {{0}, {0, 1}}, 1);
  EXPECT_THAT(mine.receives, ElementsAre(Message{0, {{0, longest / 2}}}));
}

TEST(Plan, ReplicatedArraysComeFromTheSourcesInTurn) {
  const Roles roles{{0, 1}, {1, 2, 3, 4}};
  const RedistributionPlan first = plan_replicated(5, 5, roles, 0);
  EXPECT_EQ(first.after, 0);
  EXPECT_THAT(first.sends, ElementsAre(Message{2, {{0, 5}}}, Message{4, {{0, 5}}}));
  const RedistributionPlan second = plan_replicated(5, 7, roles, 1);
  EXPECT_THAT(second.kept, ElementsAre(KeptElements{0, 0, 5}));
  EXPECT_EQ(second.after, 7);
  EXPECT_THAT(second.sends, ElementsAre(Message{3, {{0, 5}}}));
  EXPECT_THAT(plan_replicated(5, 3, roles, 4).receives, ElementsAre(Message{0, {{0, 3}}}));
  EXPECT_THAT(plan_replicated(0, 0, roles, 4).receives, IsEmpty());
}

// ---- properties, against moving each element by itself -----------------------------------------------------------

struct Case {
  int ranks = 0;
  Roles roles;
  ElementDistribution before;
  ElementDistribution after;
};

Partition random_partition(std::mt19937_64& random, std::int64_t length, int parts) {
  if (random() % 3 == 0) return Partition::block(length, parts);
  std::vector<std::int64_t> bounds{0, length};
  for (int k = 1; k < parts; ++k)
    bounds.push_back(static_cast<std::int64_t>(random() % (static_cast<std::uint64_t>(length) + 1)));
  std::sort(bounds.begin(), bounds.end());
  return Partition{bounds};
}

std::vector<int> some_of(std::mt19937_64& random, std::vector<int> ranks, std::size_t count) {
  std::shuffle(ranks.begin(), ranks.end(), random);
  ranks.resize(count);
  if (random() % 2 == 0) std::sort(ranks.begin(), ranks.end());
  return ranks;
}

Roles random_roles(std::mt19937_64& random, int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const std::size_t some = 1 + random() % all.size();
  const std::vector<int> first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(some));
  switch (random() % 5) {
    case 0: return {first, all};                       // growth by merge
    case 1: return {all, some_of(random, all, some)};  // shrink to some of them
    case 2: return {all, all};                         // same processes, other shares
    case 3:                                            // baseline: no rank is both
      if (some < all.size())
        return {first, std::vector<int>(all.begin() + static_cast<std::ptrdiff_t>(some), all.end())};
      return {all, all};
    default: return {some_of(random, all, some), some_of(random, all, 1 + random() % all.size())};
  }
}

// Gives each element, or runs of elements, to any part.
ElementDistribution random_lists(std::mt19937_64& random, std::int64_t length, int parts) {
  std::vector<Extents> lists(static_cast<std::size_t>(parts));
  for (std::int64_t at = 0; at < length;) {
    const std::int64_t end = std::min(length, at + 1 + static_cast<std::int64_t>(random() % 5));
    lists[random() % lists.size()].push_back({at, end});
    at = end;
  }
  EXPECT_EQ(complaint(length, lists), "");
  return ElementDistribution::listed(length, std::move(lists));
}

ElementDistribution random_distribution(std::mt19937_64& random, std::int64_t length, int parts) {
  switch (random() % 5) {
    case 0: return ElementDistribution::cyclic(length, 1 + static_cast<std::int64_t>(random() % 9), parts);
    case 1: {
      const std::int64_t columns = length % 3 == 0 ? 3 : length % 2 == 0 ? 2 : 1;
      return ElementDistribution::rectangles(length / columns, columns, parts);
    }
    case 2: return random_lists(random, length, parts);
    default: return random_partition(random, length, parts);
  }
}

Case random_case(std::mt19937_64& random) {
  Case c;
  c.ranks = 1 + static_cast<int>(random() % 8);
  c.roles = random_roles(random, c.ranks);
  const auto length = static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 5 : 60));
  const auto next_length = random() % 4 == 0 ? static_cast<std::int64_t>(random() % 60) : length;
  c.before = random_distribution(random, length, static_cast<int>(c.roles.sources.size()));
  c.after = random_distribution(random, next_length, static_cast<int>(c.roles.targets.size()));
  return c;
}

// The elements in the memory of each rank, in order; -1: nothing has arrived.
using Memories = std::vector<std::vector<std::int64_t>>;

Memories memories_of(const ElementDistribution& distribution, const std::vector<int>& ranks, int all) {
  Memories memories(static_cast<std::size_t>(all));
  for (int k = 0; k < distribution.parts(); ++k) {
    for (const ElementRange& range : distribution.extents(k))
      for (std::int64_t e = range.first; e < range.end; ++e)
        memories[static_cast<std::size_t>(ranks[static_cast<std::size_t>(k)])].push_back(e);
  }
  return memories;
}

std::vector<std::int64_t> elements_at(const std::vector<std::int64_t>& memory, const Extents& places) {
  std::vector<std::int64_t> elements;
  for (const ElementRange& range : places)
    for (std::int64_t at = range.first; at < range.end; ++at)
      elements.push_back(memory.at(static_cast<std::size_t>(at)));
  return elements;
}

// Writes an element to a place that nothing has been written to.
void put(std::vector<std::int64_t>& memory, std::int64_t at, std::int64_t element) {
  std::int64_t& place = memory.at(static_cast<std::size_t>(at));
  EXPECT_EQ(place, -1) << "element " << element << " arrives where another one is";
  place = element;
}

// Returns the message to `peer`, which must be the only one.
const Message& only_message(const std::vector<Message>& messages, int peer) {
  static const Message none;
  const Message* found = &none;
  for (const Message& m : messages) {
    if (m.peer != peer) continue;
    EXPECT_EQ(found, &none) << "two messages between the same ranks";
    found = &m;
  }
  return *found;
}

// Moves the elements one by one. Returns the memory of each rank afterwards.
Memories moved(const std::vector<RedistributionPlan>& plans, const Memories& before) {
  Memories after;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const int me = static_cast<int>(rank);
    const RedistributionPlan& mine = plans[rank];
    std::vector<std::int64_t> memory(static_cast<std::size_t>(mine.after), -1);
    EXPECT_EQ(mine.before, static_cast<std::int64_t>(before[rank].size()));
    for (const KeptElements& k : mine.kept)
      for (std::int64_t i = 0; i < k.count; ++i)
        put(memory, k.to + i, before[rank].at(static_cast<std::size_t>(k.from + i)));
    for (const Message& m : mine.receives) {
      EXPECT_NE(m.peer, me) << "a message to oneself";
      const auto sender = static_cast<std::size_t>(m.peer);
      const auto sent = elements_at(before[sender], only_message(plans[sender].sends, me).places);
      EXPECT_EQ(static_cast<std::int64_t>(sent.size()), count(m.places));
      std::size_t next = 0;
      for (const ElementRange& range : m.places)
        for (std::int64_t at = range.first; at < range.end && next < sent.size(); ++at) put(memory, at, sent[next++]);
    }
    for (const Message& m : mine.sends)
      EXPECT_FALSE(only_message(plans[static_cast<std::size_t>(m.peer)].receives, me).places.empty());
    after.push_back(std::move(memory));
  }
  return after;
}

void expect_equal(const Memories& is, const Memories& should, std::int64_t known) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t rank = 0; rank < is.size(); ++rank) {
    ASSERT_EQ(is[rank].size(), should[rank].size());
    for (std::size_t i = 0; i < is[rank].size(); ++i)
      ASSERT_EQ(is[rank][i], should[rank][i] < known ? should[rank][i] : -1) << "rank " << rank << " place " << i;
  }
}

TEST(PlanProperty, EveryElementArrivesExactlyOnce) {
  std::mt19937_64 random{2016};
  for (int run = 0; run < 6000; ++run) {
    SCOPED_TRACE(run);
    const Case c = random_case(random);
    std::vector<RedistributionPlan> plans;
    for (int rank = 0; rank < c.ranks; ++rank) plans.push_back(plan(c.before, c.after, c.roles, rank));
    expect_equal(moved(plans, memories_of(c.before, c.roles.sources, c.ranks)),
                 memories_of(c.after, c.roles.targets, c.ranks), c.before.length());
    if (HasFailure()) return;
  }
}

Memories replicas(std::int64_t length, const std::vector<int>& ranks, int all) {
  Memories memories(static_cast<std::size_t>(all));
  for (const int rank : ranks) {
    memories[static_cast<std::size_t>(rank)].resize(static_cast<std::size_t>(length));
    std::iota(memories[static_cast<std::size_t>(rank)].begin(), memories[static_cast<std::size_t>(rank)].end(), 0);
  }
  return memories;
}

TEST(PlanProperty, EveryTargetGetsAReplicatedArrayOnce) {
  std::mt19937_64 random{2017};
  for (int run = 0; run < 3000; ++run) {
    SCOPED_TRACE(run);
    const Case c = random_case(random);
    const std::int64_t before = c.before.length();
    const std::int64_t after = c.after.length();
    std::vector<RedistributionPlan> plans;
    for (int rank = 0; rank < c.ranks; ++rank) plans.push_back(plan_replicated(before, after, c.roles, rank));
    expect_equal(moved(plans, replicas(before, c.roles.sources, c.ranks)), replicas(after, c.roles.targets, c.ranks),
                 before);
    // No source sends more than one message more than another.
    std::size_t most = 0;
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const int s : c.roles.sources) {
      most = std::max(most, plans[static_cast<std::size_t>(s)].sends.size());
      least = std::min(least, plans[static_cast<std::size_t>(s)].sends.size());
    }
    ASSERT_LE(most - least, 1U);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace hocket::redistribute
