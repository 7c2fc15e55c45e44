#include "coordinator/cores/leaving.hpp"

#include <gtest/gtest.h>

namespace hocket::coordinator {
namespace {

using Counts = std::vector<NodeCount>;

class LeavingTest : public ::testing::Test {
 protected:
  LeavingTest() {
    app.id = AppId{1};
    app.malleability.malleable = true;
  }
  // Lets the application run there, and have the cores.
  void run_on(const Counts& nodes) {
    std::int64_t all = 0;
    for (const NodeCount& node : nodes) all += node.count;
    app.malleability.processes = all;
    app.reported_nodes = nodes;
    cores.settle(app.id, all, nodes, "n1");
  }
  Counts leaves(std::int64_t processes, const Counts& before = {}) {
    return nodes_to_leave(cores, app, processes, before);
  }

  model::Cores cores{{{"n1", 4}, {"n2", 4}, {"n3", 4}}};
  model::Application app;
};

TEST_F(LeavingTest, TheNodesThatWereAddedAreLeft) {
  run_on({{"n1", 2}, {"n2", 4}, {"n3", 1}});
  EXPECT_EQ(leaves(3, {{"n1", 2}, {"n2", 1}}), (Counts{{"n2", 3}, {"n3", 1}}));
  EXPECT_EQ(leaves(5, {{"n1", 2}, {"n2", 1}}), (Counts{{"n2", 2}})) << "no more than it gives up";
}

TEST_F(LeavingTest, NodesWhereOthersWaitComeFirst) {
  run_on({{"n1", 2}, {"n2", 2}, {"n3", 2}});
  cores.settle(AppId{2}, 3, {{"n3", 3}}, "n3");
  EXPECT_EQ(leaves(4), (Counts{{"n3", 1}}));
  EXPECT_EQ(leaves(3, {{"n1", 2}, {"n3", 2}}), (Counts{{"n3", 1}, {"n2", 2}}));
  cores.settle(AppId{3}, 4, {{"n1", 4}}, "n1");
  EXPECT_EQ(leaves(3), (Counts{{"n1", 2}, {"n3", 1}}));
}

TEST_F(LeavingTest, CoresOfAGrowthThatMayHaveBegunAreLeftToo) {
  run_on({{"n1", 4}});
  ASSERT_TRUE(cores.allocate(app.id, 2));
  EXPECT_EQ(leaves(4, {{"n1", 4}}), (Counts{{"n2", 2}}));
}

TEST_F(LeavingTest, NothingIsChosenWhereItsDataDecide) {
  run_on({{"n1", 2}, {"n2", 2}});
  EXPECT_EQ(leaves(2), Counts{}) << "nobody waits, and nothing was added";
  EXPECT_EQ(leaves(4, {{"n1", 2}}), Counts{}) << "it does not shrink";
  app.malleability.processes = 3;
  EXPECT_EQ(leaves(2, {{"n1", 2}}), Counts{}) << "nobody knows where the three run";
  run_on({{"n1", 4}});
  EXPECT_EQ(leaves(2, {{"n1", 2}}), Counts{}) << "one node";
}

}  // namespace
}  // namespace hocket::coordinator
