#include "malleable/worlds.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

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

// Checks, for random processes and sleepers, that each process gets exactly one role, that none ends while one of its
// world computes, and that none sleeps whose world has no process left to wake it.
TEST(Worlds, HoldForAnyProcesses) {
  std::mt19937 random(7);
  for (int run = 0; run < 3000; ++run) {
    std::vector<int> sizes;
    for (int world = 0; world < 1 + static_cast<int>(random() % 4); ++world)
      sizes.push_back(1 + static_cast<int>(random() % 4));
    Processes computing;
    Processes sleepers;
    std::set<std::int64_t> awake;  // worlds with a computing process
    for (const ProcessInfo& process : worlds_of(sizes)) {
      const bool sleeps = awake.contains(process.world) && random() % 3 == 0;
      (sleeps ? sleepers : computing).push_back(process);
      awake.insert(process.world);
    }
    const int targets = 1 + static_cast<int>(random() % computing.size());
    const Departure departure = shrink(computing, sleepers, targets);
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
