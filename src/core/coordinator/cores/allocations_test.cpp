// Tests event by event what applications get of the allocations of a resource manager, and what they give back.
#include "coordinator/cores/allocations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::seconds;
using testing::Lines;

policy::CoreDecision planned;  // returned once, to the next question
policy::CoreDecision as_planned(const policy::CoreView&, const event::Event&, AppId) {
  return std::exchange(planned, {});
}
constexpr policy::CorePolicy planner{"planner", "", policy::CoreKind::interference, as_planned};

// A daemon that counts the cores of its own node, n1: four of them.
CoordinatorSettings settings_of_a_job(const policy::CorePolicy* interference, const policy::CorePolicy* sharing) {
  CoordinatorSettings settings = testing::usual_settings();
  settings.policy.interference = interference;
  settings.policy.sharing = sharing;
  settings.cores = 4;
  settings.probe = false;
  return settings;
}

// Application N is the only one of job N, with member N. Tool 90 + N reports its allocation.
class AllocationsTest : public testing::Script {
 protected:
  explicit AllocationsTest(const policy::CorePolicy* interference = &planner,
                           const policy::CorePolicy* sharing = nullptr)
      : Script(settings_of_a_job(interference, sharing)) {
    planned = {};
    at(0, 0, event::NodeCores{"n1", 4});
  }

  static event::HeldNodes told(const std::string& job, const std::string& allocation, const std::string& nodes,
                               std::int64_t least, std::int64_t most) {
    event::HeldNodes said;
    said.job = job;
    said.allocation = allocation;
    said.nodes = nodes;
    said.least_nodes = least;
    said.most_nodes = most;
    return said;
  }
  Lines held(std::uint64_t job, const std::string& allocation, const std::string& nodes, std::int64_t least = 0) {
    return at(now_, 90 + job, told("job" + std::to_string(job), allocation, nodes, least, 0));
  }
  // The resource manager has answered the question for more cores: for job 1, which may have three nodes.
  Lines answered(const std::string& nodes, const std::string& refusal = {}) {
    event::HeldNodes said = told("job1", "17", nodes, 1, 3);
    said.waited = seconds{1};
    said.text = {refusal};
    return at(now_ += 1000, 91, said);
  }
  void start(std::uint64_t member, std::int64_t processes, const std::string& nodes) {
    hello(member, "job" + std::to_string(member), "app" + std::to_string(member), processes, now_);
    event::Malleable said{processes, 0, 0, "merge", 0};
    said.nodes = nodes;
    at(now_, member, said);
  }
  Lines resized(std::uint64_t member, std::int64_t from, std::int64_t to, const std::string& nodes,
                std::uint64_t request = 0) {
    event::Reconfiguration said;
    said.request = RequestId{request};
    said.done = true;
    said.sources = from;
    said.targets = to;
    said.nodes = nodes;
    return at(now_ += 1000, member, said);
  }
  Lines grow(std::uint64_t app, std::int64_t processes, std::int64_t return_at = 0) {
    policy::CoreChange change;
    change.application = AppId{app};
    change.processes = processes;
    change.return_at_iteration = return_at;
    planned.changes.push_back(change);
    return at(now_ += 1000, 0, event::Profile{AppId{app}, 4, 1, 0, 0, 0, 1, 0});
  }
  const model::Application& app(std::uint64_t id) { return coordinator.cluster().applications().at(AppId{id}); }
  std::int64_t free_for(std::uint64_t app) { return coordinator.cores().free_for(AppId{app}); }

  std::int64_t now_ = 0;  // in milliseconds
};

TEST_F(AllocationsTest, PoliciesGiveOutWhatTheJobHolds) {
  held(1, "17", "n1=2 n2=2");
  start(1, 2, "n1=2");
  EXPECT_EQ(coordinator.cores().total(), 6) << "the second node is known from the allocation";
  EXPECT_EQ(free_for(1), 2);
  EXPECT_EQ(grow(1, 5), Lines{"0 DECISION 1 planner leave app1 2 to 2"});
  EXPECT_EQ(grow(1, 4), (Lines{"1 RECONFIGURE 1 to 4 at 0 on n2 n2", "0 DECISION 2 planner expand app1 2 to 4"}));
}

TEST_F(AllocationsTest, TheAllocationMayBeToldAfterTheStart) {
  start(1, 2, "n1=2");
  held(1, "17", "n1=2 n2=2");
  EXPECT_EQ(free_for(1), 2);
  held(1, "17", "n1=4 n2=2");
  EXPECT_EQ(free_for(1), 4);
  held(1, "17", "");
  EXPECT_EQ(free_for(1), coordinator.cores().free()) << "unknown: it uses what the controller knows";
}

TEST_F(AllocationsTest, EndWithTheApplicationAndItsTool) {
  held(1, "17", "n2=2");
  at(0, 91, event::Lost{});
  EXPECT_EQ(coordinator.cores().total(), 4) << "no application has come";
  held(1, "17", "n2=2");
  start(1, 2, "n2=2");
  at(0, 91, event::Lost{});
  EXPECT_EQ(coordinator.cores().total(), 6) << "the application still runs";
  at(0, 1, event::Bye{});
  EXPECT_EQ(coordinator.cores().total(), 4);
  held(2, "18", "n2=2");
  start(2, 2, "n2=2");
  at(0, 2, event::Bye{});
  EXPECT_EQ(coordinator.cores().total(), 6) << "its tool may start another application";
  at(0, 92, event::Bye{});
  EXPECT_EQ(coordinator.cores().total(), 4);
  EXPECT_EQ(coordinator.cores().free(), 4);
}

TEST_F(AllocationsTest, AreRefusedIfTheyMakeNoSense) {
  EXPECT_EQ(held(1, "17", "n1=x"), Lines{"91 REFUSED HELD_NODES: write NODE=CORES, not 'n1=x'"});
  EXPECT_EQ(held(1, "", "n1=2"), Lines{"91 REFUSED HELD_NODES: name a job and an allocation"});
  EXPECT_EQ(coordinator.cores().total(), 4);
}

// ---- giving back -------------------------------------------------------------------------------------------------

TEST_F(AllocationsTest, NodesThatWereLeftForGoodAreGivenBack) {
  held(1, "17", "n1=2 n2=2 n3=2", 1);
  start(1, 6, "n1=2 n2=2 n3=2");
  EXPECT_EQ(resized(1, 6, 5, "n1=2 n2=1 n3=2"), Lines{}) << "n2 is in use";
  EXPECT_EQ(resized(1, 5, 2, "n1=2"), Lines{"91 CHANGE_ALLOCATION 17 release n2 n3"});
  EXPECT_EQ(coordinator.cores().total(), 4) << "nobody uses them meanwhile";
  EXPECT_EQ(free_for(1), 0);
  held(1, "17", "n1=2 n3=2", 1);  // the resource manager has refused one
  EXPECT_EQ(free_for(1), 2);
  EXPECT_EQ(grow(1, 4), (Lines{"1 RECONFIGURE 1 to 4 at 0 on n3 n3", "0 DECISION 1 planner expand app1 2 to 4"}));
}

TEST_F(AllocationsTest, AsManyNodesAsTheUserWantsAreKept) {
  held(1, "17", "n1=2 n2=2 n3=2", 2);
  start(1, 6, "n1=2 n2=2 n3=2");
  EXPECT_EQ(resized(1, 6, 2, "n1=2"), Lines{"91 CHANGE_ALLOCATION 17 release n2"});
  EXPECT_EQ(free_for(1), 2);
}

// MPICH's mpiexec would choose a node that the job does not hold any more, or end.
TEST_F(AllocationsTest, NewProcessesArePlacedOnNodesOfTheJob) {
  held(1, "17", "n1=2 n2=2", 1);
  start(1, 4, "n1=2 n2=2");
  resized(1, 4, 1, "n1=1");
  event::Resize asked;
  asked.application = "app1";
  asked.processes = 2;
  EXPECT_EQ(at(now_, 9, asked), Lines{"1 RECONFIGURE 1 to 2 at 0 on n1"});
}

TEST_F(AllocationsTest, NothingIsGivenBackUnlessTheUserWantsIt) {
  held(1, "17", "n1=2 n2=2");
  start(1, 4, "n1=2 n2=2");
  EXPECT_EQ(resized(1, 4, 2, "n1=2"), Lines{});
}

TEST_F(AllocationsTest, NothingIsGivenBackIfItIsNotKnownWhereTheApplicationRuns) {
  held(1, "17", "n1=2 n2=2", 1);
  start(1, 4, "");
  EXPECT_EQ(resized(1, 4, 2, ""), Lines{});
  EXPECT_EQ(resized(1, 2, 1, "another=1"), Lines{});
}

TEST_F(AllocationsTest, ATemporaryExpansionGivesNothingBack) {
  held(1, "17", "n1=2 n2=2", 1);
  start(1, 2, "n1=2");
  EXPECT_EQ(grow(1, 4, 50).front(), "1 RECONFIGURE 1 to 4 at 0 on n2 n2");
  EXPECT_EQ(resized(1, 2, 4, "n1=2 n2=2", 1), Lines{"1 RECONFIGURE 2 to 2 at 50 leaving n2=2"});
  const Lines back = resized(1, 4, 2, "n1=2", 2);
  EXPECT_THAT(back, ::testing::Not(::testing::Contains(::testing::HasSubstr("CHANGE_ALLOCATION"))));
  EXPECT_EQ(free_for(1), 2);
}

TEST_F(AllocationsTest, TwoApplicationsOfOneJobKeepItsNodes) {
  held(1, "17", "n1=2 n2=2", 1);
  held(2, "17", "n1=2 n2=2", 1);
  start(1, 3, "n1=1 n2=2");
  start(2, 1, "n1=1");
  EXPECT_EQ(resized(1, 3, 1, "n1=1"), Lines{}) << "the other one may want to grow";
  EXPECT_EQ(free_for(2), 2);
}

TEST_F(AllocationsTest, NodesOfOthersAreNotGivenBack) {
  held(1, "17", "n1=2 n2=2", 1);
  start(1, 4, "n1=2 n2=2");
  start(3, 1, "n2=1");  // of no allocation
  EXPECT_EQ(resized(1, 4, 2, "n1=2"), Lines{});
}

// MPICH's mpiexec would choose nodes itself, and end.
TEST_F(AllocationsTest, NothingGrowsWithoutPlacesAfterTheNodesHaveChanged) {
  held(1, "17", "n1=2 n2=2", 1);
  start(1, 4, "n1=2 n2=2");
  at(now_, 0, event::NodeCores{"n4", 8});  // of the pool
  EXPECT_EQ(resized(1, 4, 1, "n1=1"), Lines{"91 CHANGE_ALLOCATION 17 release n2"});
  held(1, "17", "n1=2", 1);
  event::Resize asked;
  asked.application = "app1";
  asked.processes = 3;
  EXPECT_EQ(at(now_, 9, asked), Lines{"9 REFUSED cannot resize: the allocation of 'app1' has no such cores left"});
  EXPECT_EQ(coordinator.cores().of(AppId{1}), 1);
  asked.processes = 2;
  EXPECT_EQ(at(now_, 9, asked), Lines{"1 RECONFIGURE 1 to 2 at 0 on n1"});
}

TEST_F(AllocationsTest, AProgramThatIsAboutToStartKeepsTheNodes) {
  held(1, "17", "n1=2 n2=2", 1);
  start(1, 4, "n1=2 n2=2");
  held(2, "17", "n1=2", 1);  // its tool does not know of n2
  EXPECT_EQ(coordinator.cores().held_by("17").size(), 2U);
  EXPECT_EQ(resized(1, 4, 2, "n1=2"), Lines{});
  at(0, 92, event::Lost{});
  EXPECT_EQ(coordinator.cores().held_by("17").size(), 2U);
}

// Its launcher has its own list of hosts, or knows nodes by other names.
TEST_F(AllocationsTest, AProgramThatRunsElsewhereUsesThePool) {
  held(1, "17", "n2=2");
  start(1, 2, "n1=2");
  EXPECT_EQ(free_for(1), 2);
  EXPECT_TRUE(coordinator.cores().allocation_of(AppId{1}).empty());
  held(1, "17", "n1=3 n2=2");
  EXPECT_EQ(free_for(1), 3);
  EXPECT_EQ(coordinator.cores().allocation_of(AppId{1}), "17");
}

// ---- asking for more ---------------------------------------------------------------------------------------------

// Job 1 holds two nodes, and may have three. Its application runs on one of them. Tool 9 resizes it.
class GrowingAllocationsTest : public AllocationsTest {
 protected:
  GrowingAllocationsTest() {
    at(0, 0, event::NodeCores{"n1", 2});
    at(0, 91, told("job1", "17", "n1=2 n2=2", 1, 3));
    start(1, 2, "n1=2");
  }
  Lines resize(std::int64_t processes, std::uint64_t tool = 9) {
    event::Resize asked;
    asked.application = "app1";
    asked.processes = processes;
    return at(now_ += 1000, tool, asked);
  }
};

TEST_F(GrowingAllocationsTest, AResizeBeyondTheAllocationWaitsForTheResourceManager) {
  EXPECT_EQ(resize(6), Lines{"91 CHANGE_ALLOCATION 17 more 2"});
  EXPECT_EQ(answered("n1=2 n2=2 n3=2"), Lines{"1 RECONFIGURE 1 to 6 at 0 on n2 n2 n3 n3"});
  EXPECT_EQ(resized(1, 2, 6, "n1=2 n2=2 n3=2", 1), Lines{"9 RECONFIGURATION 1 done 2 to 6"});
  EXPECT_EQ(free_for(1), 0);
  EXPECT_EQ(resized(1, 6, 4, "n1=2 n2=2"), Lines{"91 CHANGE_ALLOCATION 17 release n3"});
}

TEST_F(GrowingAllocationsTest, WhatIsHeldNeedsNoQuestion) {
  EXPECT_EQ(resize(4), Lines{"1 RECONFIGURE 1 to 4 at 0 on n2 n2"});
}

TEST_F(GrowingAllocationsTest, ARefusalChangesNothing) {
  resize(6);
  EXPECT_EQ(answered("n1=2 n2=2", "no"),
            Lines{"9 REFUSED cannot resize: the resource manager gives no more cores: no"});
  EXPECT_EQ(app(1).malleability.resizing_to, 0);
  EXPECT_EQ(coordinator.cores().of(AppId{1}), 2);
  EXPECT_EQ(free_for(1), 2);
  EXPECT_EQ(resize(6), Lines{"91 CHANGE_ALLOCATION 17 more 2"}) << "it may be asked again";
}

TEST_F(GrowingAllocationsTest, FewerCoresThanAskedForAreTooFew) {
  EXPECT_EQ(resize(9), Lines{"91 CHANGE_ALLOCATION 17 more 5"});
  const Lines said = answered("n1=2 n2=2 n3=2");
  EXPECT_THAT(said, ::testing::ElementsAre(::testing::StartsWith("9 REFUSED cannot resize: 9 processes"),
                                           "91 CHANGE_ALLOCATION 17 release n3"));
  EXPECT_EQ(free_for(1), 2);
}

TEST_F(GrowingAllocationsTest, CoresThatComeTooLateAreGivenBack) {
  resize(6);
  EXPECT_EQ(at(now_, 9, event::WithdrawResize{}), Lines{"9 REFUSED the resource manager has not given the cores yet"});
  EXPECT_THAT(resize(6), ::testing::ElementsAre(::testing::StartsWith("9 REFUSED cannot resize: 6 processes")))
      << "the question before is not answered yet";
  EXPECT_EQ(answered("n1=2 n2=2 n3=2"), Lines{"91 CHANGE_ALLOCATION 17 release n3"});
  resize(6, 8);
  EXPECT_EQ(at(now_, 8, event::Lost{}), Lines{});
  EXPECT_EQ(answered("n1=2 n2=2 n3=2"), Lines{"91 CHANGE_ALLOCATION 17 release n3"});
}

TEST_F(GrowingAllocationsTest, TheToolOrTheApplicationMayEndMeanwhile) {
  resize(6);
  EXPECT_THAT(at(now_, 91, event::Lost{}),
              ::testing::ElementsAre(::testing::StartsWith("9 REFUSED cannot resize: 6 processes")));
  EXPECT_THAT(resize(6), ::testing::ElementsAre(::testing::StartsWith("9 REFUSED cannot resize: 6 processes")));
  at(0, 91, told("job1", "17", "n1=2 n2=2", 1, 3));
  EXPECT_EQ(resize(6), Lines{"91 CHANGE_ALLOCATION 17 more 2"});
  EXPECT_EQ(at(now_, 1, event::Bye{}), Lines{"9 REFUSED cannot resize: no application runs"});
  EXPECT_EQ(answered("n1=2 n2=2 n3=2"), Lines{"91 CHANGE_ALLOCATION 17 release n3"});
}

TEST_F(GrowingAllocationsTest, NoMoreNodesThanTheUserPermits) {
  at(0, 91, told("job1", "17", "n1=2 n2=2", 1, 2));
  EXPECT_THAT(resize(6), ::testing::ElementsAre(::testing::StartsWith("9 REFUSED cannot resize: 6 processes")));
}

TEST_F(GrowingAllocationsTest, PoliciesAskForNothing) {
  EXPECT_EQ(grow(1, 6), Lines{"0 DECISION 1 planner leave app1 2 to 2"});
  EXPECT_THAT(grow(1, 6, 50), ::testing::Not(::testing::Contains(::testing::HasSubstr("CHANGE_ALLOCATION"))));
}

// ---- sharing -----------------------------------------------------------------------------------------------------

class SharedAllocationsTest : public AllocationsTest {
 protected:
  SharedAllocationsTest() : AllocationsTest(nullptr, &policy::fair) {}
};

TEST_F(SharedAllocationsTest, EachAllocationIsSharedAmongItsApplications) {
  held(1, "17", "n2=2");
  held(2, "18", "n3=6");
  start(1, 1, "n2=1");
  start(2, 1, "n3=1");
  start(3, 1, "n1=1");  // of the pool, which is the daemon's node
  now_ = 60'000;        // they are not new any more
  at(now_, 0, event::NodeCores{"n1", 4});
  EXPECT_EQ(app(1).malleability.resizing_to, 2);
  EXPECT_EQ(app(2).malleability.resizing_to, 6);
  EXPECT_EQ(app(3).malleability.resizing_to, 4);
}

}  // namespace
}  // namespace hocket::coordinator
