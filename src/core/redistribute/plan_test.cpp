#include "redistribute/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
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
  EXPECT_EQ(first.kept, (ElementRange{0, 2}));
  EXPECT_THAT(first.sends, ElementsAre(Message{1, {2, 4}, 2}));
  EXPECT_THAT(first.receives, IsEmpty());
  const RedistributionPlan second = plan(before, after, roles, 1);
  EXPECT_EQ(second.kept, (ElementRange{}));
  EXPECT_THAT(second.sends, ElementsAre(Message{2, {4, 6}, 4}, Message{3, {6, 8}, 6}));
  EXPECT_THAT(second.receives, ElementsAre(Message{0, {2, 4}, 0}));
}

TEST(Plan, SharesOfTheLongestArray) {
  constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  const RedistributionPlan mine = plan(Partition::block(longest, 1), Partition::block(longest, 2), {{0}, {0, 1}}, 1);
  EXPECT_THAT(mine.receives, ElementsAre(Message{0, {longest / 2 + 1, longest}, 0}));
}

TEST(Plan, ReplicatedArraysComeFromTheSourcesInTurn) {
  const Roles roles{{0, 1}, {1, 2, 3, 4}};
  const RedistributionPlan first = plan_replicated(5, roles, 0);
  EXPECT_EQ(first.after, (ElementRange{}));
  EXPECT_THAT(first.sends, ElementsAre(Message{2, {0, 5}, 0}, Message{4, {0, 5}, 0}));
  const RedistributionPlan second = plan_replicated(5, roles, 1);
  EXPECT_EQ(second.kept, (ElementRange{0, 5}));
  EXPECT_THAT(second.sends, ElementsAre(Message{3, {0, 5}, 0}));
  EXPECT_THAT(plan_replicated(5, roles, 4).receives, ElementsAre(Message{0, {0, 5}, 0}));
  EXPECT_THAT(plan_replicated(0, roles, 4).receives, IsEmpty());
}

// ---- properties, against moving each element by itself -----------------------------------------------------------

struct Case {
  int ranks = 0;
  Roles roles;
  Partition before;
  Partition after;
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

Case random_case(std::mt19937_64& random) {
  Case c;
  c.ranks = 1 + static_cast<int>(random() % 8);
  c.roles = random_roles(random, c.ranks);
  const auto length = static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 5 : 60));
  c.before = random_partition(random, length, static_cast<int>(c.roles.sources.size()));
  c.after = random_partition(random, length, static_cast<int>(c.roles.targets.size()));
  return c;
}

// Maps (rank, element) to how often the rank holds the element.
using Held = std::map<std::pair<int, std::int64_t>, int>;

Held held_by(const Partition& partition, const std::vector<int>& ranks) {
  Held held;
  for (int k = 0; k < partition.parts(); ++k) {
    for (std::int64_t e = partition.part(k).first; e < partition.part(k).end; ++e)
      ++held[{ranks[static_cast<std::size_t>(k)], e}];
  }
  return held;
}

// Messages as (from, to, first, end).
using Moves = std::vector<std::array<std::int64_t, 4>>;

void expect_peers_agree(const std::vector<RedistributionPlan>& plans) {
  Moves sent;
  Moves received;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const auto me = static_cast<std::int64_t>(rank);
    for (const Message& m : plans[rank].sends) {
      sent.push_back({me, m.peer, m.elements.first, m.elements.end});
      ASSERT_EQ(m.first_of_peer, plans[static_cast<std::size_t>(m.peer)].after.first);
    }
    for (const Message& m : plans[rank].receives) {
      received.push_back({m.peer, me, m.elements.first, m.elements.end});
      ASSERT_EQ(m.first_of_peer, plans[static_cast<std::size_t>(m.peer)].before.first);
    }
  }
  std::sort(sent.begin(), sent.end());
  std::sort(received.begin(), received.end());
  ASSERT_EQ(sent, received);
}

// Moves the elements one by one. Returns what each rank holds afterwards, and how often.
Held moved(const std::vector<RedistributionPlan>& plans, const Held& before) {
  Held after;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const int me = static_cast<int>(rank);
    const RedistributionPlan& mine = plans[rank];
    for (std::int64_t e = mine.kept.first; e < mine.kept.end; ++e) after[{me, e}] += before.at({me, e});
    for (const Message& m : mine.receives) {
      EXPECT_NE(m.peer, me) << "a message to oneself";
      EXPECT_GT(m.elements.count(), 0) << "an empty message";
      for (std::int64_t e = m.elements.first; e < m.elements.end; ++e) after[{me, e}] += before.at({m.peer, e});
    }
  }
  return after;
}

void expect_in_order(const std::vector<Message>& messages) {
  for (std::size_t i = 1; i < messages.size(); ++i) ASSERT_LE(messages[i - 1].elements.end, messages[i].elements.first);
}

TEST(PlanProperty, EveryElementArrivesExactlyOnce) {
  std::mt19937_64 random{2016};
  for (int run = 0; run < 5000; ++run) {
    SCOPED_TRACE(run);
    const Case c = random_case(random);
    std::vector<RedistributionPlan> plans;
    for (int rank = 0; rank < c.ranks; ++rank) plans.push_back(plan(c.before, c.after, c.roles, rank));
    ASSERT_EQ(moved(plans, held_by(c.before, c.roles.sources)), held_by(c.after, c.roles.targets));
    expect_peers_agree(plans);
    for (const RedistributionPlan& p : plans) {
      expect_in_order(p.sends);
      expect_in_order(p.receives);
    }
    if (HasFailure()) return;
  }
}

TEST(PlanProperty, EveryTargetGetsAReplicatedArrayOnce) {
  std::mt19937_64 random{2017};
  for (int run = 0; run < 3000; ++run) {
    SCOPED_TRACE(run);
    const Case c = random_case(random);
    const std::int64_t length = c.before.length();
    std::vector<RedistributionPlan> plans;
    Held before;
    Held after;
    for (const int s : c.roles.sources) {
      for (std::int64_t e = 0; e < length; ++e) before[{s, e}] = 1;
    }
    for (const int t : c.roles.targets) {
      for (std::int64_t e = 0; e < length; ++e) after[{t, e}] = 1;
    }
    for (int rank = 0; rank < c.ranks; ++rank) plans.push_back(plan_replicated(length, c.roles, rank));
    ASSERT_EQ(moved(plans, before), after);
    expect_peers_agree(plans);
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
