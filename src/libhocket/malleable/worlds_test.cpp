#include "malleable/worlds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace hocket::runtime {
namespace {

using Processes = std::vector<ProcessInfo>;

// Returns processes of worlds of the given sizes, in order.
Processes worlds_of(const std::vector<int>& sizes) {
  Processes all;
  for (std::size_t world = 0; world < sizes.size(); ++world)
    for (int rank = 0; rank < sizes[world]; ++rank)
      all.push_back({static_cast<std::int64_t>(100 * (world + 1)) + rank, 1, static_cast<std::int64_t>(world + 1), rank,
                     sizes[world], 0});
  return all;
}

using Ranks = std::vector<int>;

// Shrinks without any data that could stay in place.
Departure shrink(const Processes& processes, const Processes& sleepers, int targets) {
  return runtime::shrink(processes, sleepers, redistribute::Overlap(static_cast<int>(processes.size()), targets));
}

// Shrinks with an array in equal ranges.
Departure shrink_blocks(const Processes& processes, int targets) {
  const int size = static_cast<int>(processes.size());
  redistribute::Overlap overlap(size, targets);
  overlap.add(redistribute::Partition::block(840, size), redistribute::Partition::block(840, targets), 1);
  return runtime::shrink(processes, {}, overlap);
}

TEST(Worlds, ThoseStayThatHoldMostOfTheNewParts) {
  EXPECT_EQ(shrink_blocks(worlds_of({1, 1, 1, 1}), 2).stay, (Ranks{0, 2}));
  // Ranks 1 and 2 could only sleep, so ranks 3 and 5, which end, leave first.
  EXPECT_EQ(shrink_blocks(worlds_of({3, 1, 1, 1}), 4).end.size(), 2U);
  EXPECT_EQ(shrink_blocks(worlds_of({4}), 2).stay, (Ranks{0, 2}));
  EXPECT_EQ(shrink_blocks(worlds_of({4}), 2).sleep, (Ranks{1, 3}));
}

TEST(Worlds, ProcessesOfTheirOwnWorldEndTheHighestFirst) {
  const Departure departure = shrink(worlds_of({1, 1, 1, 1}), {}, 2);
  EXPECT_EQ(departure.stay, (Ranks{0, 1}));
  EXPECT_EQ(departure.end, (Ranks{2, 3}));
  EXPECT_TRUE(departure.sleep.empty());
}

TEST(Worlds, RanksOfASharedWorldSleep) {
  const Departure departure = shrink(worlds_of({4}), {}, 1);
  EXPECT_EQ(departure.stay, (Ranks{0}));
  EXPECT_EQ(departure.sleep, (Ranks{1, 2, 3}));
  EXPECT_EQ(departure.sleepers.size(), 3U);
}

TEST(Worlds, WhoCanEndGoesBeforeWhoWouldSleep) {
  const Departure departure = shrink(worlds_of({3, 1, 1}), {}, 3);
  EXPECT_EQ(departure.stay, (Ranks{0, 1, 2}));
  EXPECT_EQ(departure.end, (Ranks{3, 4}));
}

TEST(Worlds, AWholeWorldEndsOnlyWhereAllOfItMayGo) {
  // Ranks 1 and 2 form one world. Only one of them leaves, so it has to sleep.
  const Departure one = shrink(worlds_of({1, 2}), {}, 2);
  EXPECT_EQ(one.sleep, (Ranks{2}));
  const Departure both = shrink(worlds_of({1, 2}), {}, 1);
  EXPECT_EQ(both.end, (Ranks{1, 2}));
  EXPECT_TRUE(both.sleepers.empty());
}

TEST(Worlds, SleepersEndWithTheLastOfTheirWorld) {
  Processes processes = worlds_of({1, 2});
  const Processes sleepers{processes[2]};
  processes.pop_back();
  const Departure departure = shrink(processes, sleepers, 1);
  EXPECT_EQ(departure.end, (Ranks{1}));
  EXPECT_TRUE(departure.sleepers.empty());
}

TEST(Worlds, AllOfThemEndWhereNobodyStays) {
  Processes processes = worlds_of({2, 1});
  const Processes sleepers{processes[1]};
  processes.erase(processes.begin() + 1);
  const Departure departure = leave_all(processes, sleepers);
  EXPECT_EQ(departure.end, (Ranks{0, 1}));
  EXPECT_TRUE(departure.stay.empty());
  EXPECT_TRUE(departure.sleepers.empty());
}

// Puts the processes on the nodes, by rank.
Processes on_nodes(Processes processes, const std::vector<std::string>& nodes) {
  for (std::size_t rank = 0; rank < processes.size(); ++rank)
    nodes[rank].copy(processes[rank].node.data(), processes[rank].node.size() - 1);
  return processes;
}

Departure leave(const Processes& processes, int targets, const std::vector<NodeCount>& nodes) {
  return runtime::shrink(processes, {}, redistribute::Overlap(static_cast<int>(processes.size()), targets), nodes);
}

TEST(Worlds, LeaveTheNamedNodeFirst) {
  const Processes alone = on_nodes(worlds_of({1, 1, 1, 1}), {"a", "b", "a", "b"});
  EXPECT_EQ(leave(alone, 2, {{"b", 2}}).stay, (Ranks{0, 2}));
  EXPECT_EQ(leave(alone, 2, {{"a", 9}}).stay, (Ranks{0, 1})) << "rank 0 stays, so one of the others leaves as well";
  EXPECT_EQ(leave(alone, 3, {{"b", 2}}).end, (Ranks{3})) << "no more than the size asks for";
  EXPECT_EQ(leave(alone, 2, {{"b", 1}, {"a", 1}}).end, (Ranks{2, 3}));
  EXPECT_EQ(leave(alone, 2, {{"elsewhere", 2}}).stay, (Ranks{0, 1})) << "as if no node were named";
}

TEST(Worlds, SleepOnTheNamedNodeRatherThanEndOnAnother) {
  // The launcher started ranks 0 to 3 on two nodes; rank 4 is alone in its world.
  const Processes processes = on_nodes(worlds_of({4, 1}), {"a", "a", "b", "b", "a"});
  const Departure departure = leave(processes, 3, {{"b", 2}});
  EXPECT_EQ(departure.sleep, (Ranks{2, 3}));
  EXPECT_TRUE(departure.end.empty());
}

TEST(Worlds, AWorldThatCanEndLeavesTheNodeBeforeOthersSleepThere) {
  const Processes processes = on_nodes(worlds_of({2, 2, 2}), {"a", "b", "b", "b", "a", "b"});
  const Departure departure = leave(processes, 4, {{"b", 2}});
  EXPECT_EQ(departure.end, (Ranks{2, 3})) << "the world of ranks 4 and 5 is also on another node";
  EXPECT_EQ(leave(processes, 3, {{"b", 3}}).sleep, (Ranks{5}));
}

TEST(Worlds, CountProcessesByNode) {
  const Processes processes = on_nodes(worlds_of({1, 1, 1}), {"b", "a", "b"});
  EXPECT_EQ(counts_by_node(processes), (std::vector<NodeCount>{{"b", 2}, {"a", 1}}));
}

// Checks, for random processes, sleepers and nodes to be left, that a named node is left by as many as can be, that
// each process gets exactly one role, that none ends while one of its world computes, and that none sleeps whose world
// has no process left to wake it.
TEST(Worlds, HoldForAnyProcesses) {
  std::mt19937 random(7);
  for (int run = 0; run < 3000; ++run) {
    std::vector<int> sizes;
    for (int world = 0; world < 1 + static_cast<int>(random() % 4); ++world)
      sizes.push_back(1 + static_cast<int>(random() % 4));
    Processes computing;
    Processes sleepers;
    std::vector<std::string> nodes;
    std::set<std::int64_t> awake;  // worlds with a computing process
    for (const ProcessInfo& process : worlds_of(sizes)) {
      const bool sleeps = awake.contains(process.world) && random() % 3 == 0;
      (sleeps ? sleepers : computing).push_back(process);
      awake.insert(process.world);
      if (!sleeps) nodes.emplace_back(1, static_cast<char>('a' + random() % 3));
    }
    computing = on_nodes(std::move(computing), nodes);
    const int targets = 1 + static_cast<int>(random() % computing.size());
    const NodeCount named{"b", static_cast<std::int64_t>(random() % 5)};
    const redistribute::Overlap overlap(static_cast<int>(computing.size()), targets);
    const Departure departure = runtime::shrink(computing, sleepers, overlap, {named});
    const auto on_b = std::count(nodes.begin() + 1, nodes.end(), "b");  // that may leave
    std::int64_t left_b = 0;
    for (const auto* list : {&departure.end, &departure.sleep})
      for (const int rank : *list) left_b += nodes[static_cast<std::size_t>(rank)] == "b";
    const auto leavers = static_cast<std::int64_t>(computing.size()) - targets;
    ASSERT_GE(left_b, std::min({named.count, leavers, static_cast<std::int64_t>(on_b)}));
    ASSERT_EQ(static_cast<int>(departure.stay.size()), targets);
    ASSERT_EQ(departure.stay.front(), 0);
    std::set<int> told(departure.stay.begin(), departure.stay.end());
    told.insert(departure.end.begin(), departure.end.end());
    told.insert(departure.sleep.begin(), departure.sleep.end());
    ASSERT_EQ(told.size(), computing.size());
    ASSERT_EQ(departure.stay.size() + departure.end.size() + departure.sleep.size(), computing.size());
    std::set<std::int64_t> still_awake;
    for (const int rank : departure.stay) still_awake.insert(computing[static_cast<std::size_t>(rank)].world);
    for (const int rank : departure.end)
      ASSERT_FALSE(still_awake.contains(computing[static_cast<std::size_t>(rank)].world));
    for (const ProcessInfo& sleeper : departure.sleepers) ASSERT_TRUE(still_awake.contains(sleeper.world));
  }
}

}  // namespace
}  // namespace hocket::runtime
