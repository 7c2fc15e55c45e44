#include "redistribute/order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace hocket::redistribute {
namespace {

using ::testing::ElementsAre;

std::vector<Fate> all_stay(int sources) { return std::vector<Fate>(static_cast<std::size_t>(sources), Fate::stays); }

// All but rank 0 may leave.
std::vector<Fate> any_leave(int sources) {
  std::vector<Fate> fates(static_cast<std::size_t>(sources), Fate::may_leave);
  fates[0] = Fate::stays;
  return fates;
}

std::vector<Fate> fates_of(int sources, int parts) { return sources < parts ? all_stay(sources) : any_leave(sources); }

Overlap overlap_of(const ElementDistribution& before, const ElementDistribution& after) {
  Overlap overlap(before.parts(), after.parts());
  overlap.add(before, after, 1);
  return overlap;
}

double kept(const Overlap& overlap, const std::vector<int>& order) {
  double bytes = 0;
  for (std::size_t part = 0; part < order.size(); ++part)
    if (order[part] != newcomer) bytes += overlap.bytes(order[part], static_cast<int>(part));
  return bytes;
}

TEST(Order, NewRanksAreInterleaved) {
  const Overlap overlap = overlap_of(Partition::block(8, 2), Partition::block(8, 4));
  const std::vector<int> order = order_of_parts(overlap, all_stay(2));
  EXPECT_THAT(order, ElementsAre(0, newcomer, 1, newcomer));
  EXPECT_EQ(kept(overlap, order), 4);  // half; 0, 1, new, new keeps a quarter
}

TEST(Order, ThoseLeaveThatHoldLeastOfWhatStays) {
  const Overlap overlap = overlap_of(Partition::block(8, 4), Partition::block(8, 2));
  EXPECT_THAT(order_of_parts(overlap, any_leave(4)), ElementsAre(0, 2));
  EXPECT_THAT(order_of_parts(overlap, std::vector{Fate::stays, Fate::may_leave, Fate::leaves, Fate::may_leave}),
              ElementsAre(0, 3));
  EXPECT_THAT(order_of_parts(overlap, std::vector{Fate::stays, Fate::stays, Fate::may_leave, Fate::may_leave}),
              ElementsAre(0, 1));
}

TEST(Order, WithoutArraysTheLastOnesAreNewOrLeave) {
  EXPECT_THAT(order_of_parts(Overlap(2, 4), all_stay(2)), ElementsAre(0, 1, newcomer, newcomer));
  EXPECT_THAT(order_of_parts(Overlap(4, 2), any_leave(4)), ElementsAre(0, 1));
}

TEST(Order, OfEqualSizesIsTheSame) {
  const Overlap overlap = overlap_of(Partition::weighted(100, std::vector<double>{90, 5, 5}),
                                     Partition::weighted(100, std::vector<double>{5, 5, 90}));
  EXPECT_THAT(order_of_parts(overlap, all_stay(3)), ElementsAre(0, 1, 2));
}

// Returns the most that any order keeps in which process 0 has part 0; with `ascending`, of those that keep the order
// of the sources.
double most_kept(const Overlap& overlap, const std::vector<Fate>& fates, bool ascending) {
  const int sources = overlap.sources();
  const int parts = overlap.parts();
  // Each number is a process: a source, or a new one.
  std::vector<int> processes(static_cast<std::size_t>(std::max(sources, parts)));
  std::iota(processes.begin(), processes.end(), 0);
  double most = -1;
  do {
    std::vector<int> order(processes.begin(), processes.begin() + parts);
    if (order[0] != 0) continue;
    for (int& process : order)
      if (process >= sources) process = newcomer;
    std::vector<int> staying;
    std::copy_if(order.begin(), order.end(), std::back_inserter(staying), [](int p) { return p != newcomer; });
    const auto stays = [&](int source) { return std::count(staying.begin(), staying.end(), source) > 0; };
    bool possible = !ascending || std::is_sorted(staying.begin(), staying.end());
    for (int s = 0; s < sources; ++s) {
      const Fate fate = fates[static_cast<std::size_t>(s)];
      possible = possible && (stays(s) ? fate != Fate::leaves : fate != Fate::stays);
    }
    if (possible) most = std::max(most, kept(overlap, order));
  } while (std::next_permutation(processes.begin(), processes.end()));
  return most;
}

void expect_order(const Overlap& overlap, const std::vector<Fate>& fates, const std::vector<int>& order) {
  ASSERT_EQ(static_cast<int>(order.size()), overlap.parts());
  ASSERT_EQ(order[0], 0);
  std::vector<int> staying;
  std::copy_if(order.begin(), order.end(), std::back_inserter(staying), [](int p) { return p != newcomer; });
  ASSERT_TRUE(std::is_sorted(staying.begin(), staying.end()));
  ASSERT_EQ(std::adjacent_find(staying.begin(), staying.end()), staying.end());
  for (int s = 0; s < overlap.sources(); ++s) {
    const bool stays = std::binary_search(staying.begin(), staying.end(), s);
    ASSERT_NE(fates[static_cast<std::size_t>(s)], stays ? Fate::leaves : Fate::stays);
  }
}

TEST(OrderProperty, NoOtherOrderOfEqualRangesKeepsMore) {
  for (int sources = 1; sources <= 7; ++sources) {
    for (int parts = 1; parts <= 7; ++parts) {
      const Overlap overlap = overlap_of(Partition::block(840, sources), Partition::block(840, parts));
      const std::vector<Fate> fates = fates_of(sources, parts);
      const std::vector<int> order = order_of_parts(overlap, fates);
      expect_order(overlap, fates, order);
      ASSERT_EQ(kept(overlap, order), most_kept(overlap, fates, false)) << sources << " to " << parts;
    }
  }
}

std::vector<Fate> random_fates(std::mt19937_64& random, int sources, int parts) {
  std::vector<Fate> fates = all_stay(sources);
  int leave = sources - parts;
  for (int s = 1; s < sources && leave > 0; ++s) {
    if (random() % 3 != 0) continue;
    fates[static_cast<std::size_t>(s)] = Fate::leaves;
    --leave;
  }
  // Of the others, at least as many may leave as must.
  for (int s = sources - 1, may = 0; s > 0 && (may < leave || random() % 2 == 0) && leave > 0; --s) {
    if (fates[static_cast<std::size_t>(s)] == Fate::leaves) continue;
    fates[static_cast<std::size_t>(s)] = Fate::may_leave;
    ++may;
  }
  return fates;
}

TEST(OrderProperty, NoOtherOrderThatKeepsThatOfTheSourcesKeepsMore) {
  std::mt19937_64 random{50};
  for (int run = 0; run < 400; ++run) {
    SCOPED_TRACE(run);
    const int sources = 1 + static_cast<int>(random() % 6);
    const int parts = 1 + static_cast<int>(random() % 6);
    Overlap overlap(sources, parts);
    for (auto arrays = 1 + random() % 3; arrays > 0; --arrays) {
      std::vector<double> before(static_cast<std::size_t>(sources));
      std::vector<double> after(static_cast<std::size_t>(parts));
      for (double& w : before) w = static_cast<double>(1 + random() % 9);
      for (double& w : after) w = static_cast<double>(1 + random() % 9);
      if (random() % 3 == 0)
        overlap.add(ElementDistribution::cyclic(100, 1 + static_cast<std::int64_t>(random() % 30), sources),
                    ElementDistribution::cyclic(100, 7, parts), 8);
      else
        overlap.add(Partition::weighted(1000, before), Partition::weighted(1000, after), 1);
    }
    const std::vector<Fate> fates = random_fates(random, sources, parts);
    const std::vector<int> order = order_of_parts(overlap, fates);
    expect_order(overlap, fates, order);
    if (HasFatalFailure()) return;
    ASSERT_EQ(kept(overlap, order), most_kept(overlap, fates, true));
  }
}

}  // namespace
}  // namespace hocket::redistribute
