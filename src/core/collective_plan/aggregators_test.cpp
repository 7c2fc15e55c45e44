#include "collective_plan/aggregators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/splitmix.hpp"

namespace hocket::collective_plan {
namespace {

using ::testing::ElementsAre;
using Nodes = std::vector<std::int64_t>;

TEST(Aggregators, TwoOfTwoAreOnTwoNodesWhateverTheOrder) {
  EXPECT_THAT(choose_aggregators(Nodes{7, 7, 9, 9}, 2), ElementsAre(0, 2));  // by blocks
  EXPECT_THAT(choose_aggregators(Nodes{7, 9, 7, 9}, 2), ElementsAre(0, 1));  // in turn
  EXPECT_THAT(choose_aggregators(Nodes{7, 9, 9, 9}, 2), ElementsAre(0, 1));  // the nodes have unequal numbers
}

TEST(Aggregators, OneNodeIsDividedEvenly) {
  EXPECT_THAT(choose_aggregators(Nodes(8, 1), 2), ElementsAre(0, 4));
  EXPECT_THAT(choose_aggregators(Nodes(3, 1), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(choose_aggregators(Nodes(1, 1), 1), ElementsAre(0));
}

TEST(Aggregators, FewerThanNodesAreSpreadOverThem) {
  EXPECT_THAT(choose_aggregators(Nodes{1, 1, 2, 2, 3, 3, 4, 4}, 2), ElementsAre(0, 4));
}

TEST(Aggregators, AFullNodeLeavesTheRestToTheOthers) {
  EXPECT_THAT(choose_aggregators(Nodes{1, 2, 2, 2, 2}, 4), ElementsAre(0, 1, 2, 3));
}

TEST(AggregatorsProperties, NodesHaveEquallyManyUnlessTheyAreFull) {
  std::uint64_t state = 14;
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(splitmix(state += splitmix_step) % static_cast<std::uint64_t>(most + 1));
  };
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    Nodes nodes;
    const std::int64_t most = draw(6);
    for (std::int64_t left = 1 + draw(30); left > 0; --left) nodes.push_back(draw(most) * 1'000'003);
    const auto ranks = static_cast<std::int64_t>(nodes.size());
    const auto count = static_cast<int>(1 + draw(ranks - 1));
    const std::vector<int> chosen = choose_aggregators(nodes, count);
    ASSERT_EQ(chosen.size(), static_cast<std::size_t>(count));
    ASSERT_TRUE(std::adjacent_find(chosen.begin(), chosen.end(), std::greater_equal<>()) == chosen.end());
    std::map<std::int64_t, std::int64_t> had, got;
    for (const std::int64_t node : nodes) ++had[node];
    for (const int rank : chosen) {
      ASSERT_TRUE(rank >= 0 && rank < ranks);
      ++got[nodes[static_cast<std::size_t>(rank)]];
    }
    std::int64_t largest = 0;
    for (const auto& [node, number] : got) largest = std::max(largest, number);
    for (const auto& [node, number] : had) ASSERT_TRUE(got[node] == number || got[node] >= largest - 1);
  }
}

}  // namespace
}  // namespace hocket::collective_plan
