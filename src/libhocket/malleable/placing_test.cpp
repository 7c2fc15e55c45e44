#include "malleable/placing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace hocket::runtime {
namespace {

using ::testing::ElementsAre;

// Places `count` processes beside these, and writes each place as "node:core".
std::vector<std::string> placed(const std::vector<PlacedProcess>& beside, std::int64_t count, Placement placement) {
  auto nodes = nodes_of(beside, placement);
  std::vector<std::string> texts;
  for (const ProcessPlace& one : place(nodes, count, placement)) {
    texts.push_back(one.node + ":" + std::to_string(one.core));
  }
  return texts;
}

TEST(Placing, CompactFillsNodeAfterNode) {
  EXPECT_THAT(placed({{"a", 4, 0}, {"b", 2, 1}}, 4, Placement::compact), ElementsAre("a:1", "a:2", "a:3", "b:0"));
}

TEST(Placing, SpreadTakesTheEmptiestNodeAndTheCoreWithTheMostRoom) {
  EXPECT_THAT(placed({{"a", 8, 0}, {"b", 8, 0}}, 4, Placement::spread), ElementsAre("a:7", "b:7", "a:3", "b:3"));
}

TEST(Placing, AProcessWithoutCoreCountsAsPlaced) {
  EXPECT_THAT(placed({{"a", 4, -1}, {"a", 4, -1}}, 2, Placement::compact), ElementsAre("a:2", "a:3"));
}

TEST(Placing, NobodyIsBoundWhereNoCoreIsFree) {
  EXPECT_THAT(placed({{"a", 1, 0}, {"b", 1, 0}}, 3, Placement::compact), ElementsAre("a:-1", "b:-1", "a:-1"));
  EXPECT_THAT(placed({{"a", 1, 0}}, 1, Placement::spread), ElementsAre("a:-1"));
}

// A model that counts: no core is given twice, none is missed while one is free, and spread nodes differ by one at most
// once they were equal.
TEST(PlacingProperty, EachFreeCoreIsGivenOnce) {
  std::mt19937 random(7);
  for (int run = 0; run < 300; ++run) {
    const auto pick = [&random](int below) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(below));
    };
    const std::int64_t nodes = 1 + pick(4);
    const std::int64_t cores = 1 + pick(6);
    std::vector<PlacedProcess> beside;
    for (std::int64_t node = 0; node < nodes; ++node) beside.push_back({std::to_string(node), cores, pick(2) ? 0 : -1});
    for (const Placement placement : {Placement::compact, Placement::spread}) {
      const std::int64_t free = nodes * (cores - 1);
      auto occupied = nodes_of(beside, placement);
      std::map<std::pair<std::string, std::int64_t>, int> given;
      const auto places = place(occupied, free + 2, placement);
      ASSERT_EQ(places.size(), static_cast<std::size_t>(free + 2));
      for (std::int64_t i = 0; i < free + 2; ++i) {
        const ProcessPlace& one = places[static_cast<std::size_t>(i)];
        EXPECT_EQ(one.core >= 0, i < free) << "process " << i;
        if (one.core < 0) continue;
        EXPECT_EQ(++given[std::pair(one.node, one.core)], 1) << one.node << ":" << one.core;
      }
      const auto [least, most] = std::minmax_element(
          occupied.begin(), occupied.end(), [](const auto& a, const auto& b) { return a.processes < b.processes; });
      EXPECT_LE(most->processes - least->processes, 1);
    }
  }
}

}  // namespace
}  // namespace hocket::runtime
