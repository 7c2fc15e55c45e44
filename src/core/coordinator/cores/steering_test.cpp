// Tests event by event how core decisions are carried out. The policies are the test's own: they return what the test
// scripted.
#include "coordinator/cores/steering.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"
#include "explain/explain.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::event_of;
using ::testing::IsEmpty;
using testing::Lines;

policy::CoreDecision scripted_decision;  // returned once, to the next question

policy::CoreDecision say_it(const policy::CoreView&, const event::Event&, AppId) {
  return std::exchange(scripted_decision, {});
}
constexpr policy::CorePolicy scripted{"scripted", "", policy::CoreKind::interference, say_it};

constexpr std::int64_t steering_cores = 12;

CoordinatorSettings settings_with(std::vector<model::Node> nodes = {}, bool probe = false) {
  CoordinatorSettings settings = testing::usual_settings();
  settings.policy.interference = &scripted;
  settings.cores = steering_cores;
  settings.core.uncertainty = seconds{1};
  settings.probe = probe;
  settings.nodes = std::move(nodes);
  return settings;
}

// `at`, and the verbs that this class adds, take seconds.
class SteeringTest : public testing::Script {
 protected:
  explicit SteeringTest(const CoordinatorSettings& settings = settings_with()) : Script(settings) {
    scripted_decision = {};
  }

  Lines at(std::int64_t s, std::uint64_t member, event::Body body) {
    return Script::at(s * 1000, member, std::move(body));
  }
  // Makes an application of one member with the same number. Its phases start every 10 s from the first one on, and
  // have 10 iterations.
  void start(std::uint64_t member, std::int64_t processes, std::int64_t phases = 3) {
    hello(member, "job" + std::to_string(member), name(member), processes);
    at(0, member, event::Malleable{processes, 0, 0, "merge", 0});
    for (std::int64_t i = 0; i < phases; ++i) phase(10 * (i + 1), member, i);
  }
  Lines phase(std::int64_t s, std::uint64_t member, std::int64_t index, std::int64_t processes = 0) {
    event::IoPhase said;
    said.index = index;
    said.start = Time{} + seconds{s};
    said.end = Time{} + seconds{s + 1};
    said.io = seconds{1};
    said.cpu = seconds{9};
    said.iteration = 10 * (index + 1);
    said.processes = processes;
    return at(s + 1, member, said);
  }
  Lines record(std::int64_t s, std::uint64_t member, std::uint64_t request, bool done, std::int64_t from,
               std::int64_t to, std::int64_t iteration = 0) {
    event::Reconfiguration said;
    said.request = RequestId{request};
    said.done = done;
    said.sources = from;
    said.targets = to;
    said.iteration = iteration;
    return at(s, member, said);
  }
  // Scripts the policy's decision for the next event.
  static policy::CoreChange& change(std::uint64_t app, std::int64_t processes, std::int64_t return_at) {
    policy::CoreChange change;
    change.application = AppId{app};
    change.processes = processes;
    change.return_at_iteration = return_at;
    scripted_decision.changes.push_back(change);
    return scripted_decision.changes.back();
  }
  static std::string name(std::uint64_t member) { return "app" + std::to_string(member); }
  Lines poke(std::int64_t s) { return at(s, 0, event::Profile{AppId{1}, 4, 1, 0, 0, 0, 1, 0}); }
  const model::Application& app(std::uint64_t id) { return coordinator.cluster().applications().at(AppId{id}); }
};

TEST_F(SteeringTest, ATemporaryExpansionIsUndoneBeforeItsPhase) {
  start(1, 4);
  change(1, 6, 39).start_after = Time{} + seconds{38};
  EXPECT_EQ(poke(32), (Lines{"1 RECONFIGURE 1 to 6 at 0", "0 DECISION 1 scripted expand app1 4 to 6 back at 39"}));
  EXPECT_EQ(coordinator.cores().free(), 6);
  EXPECT_EQ(app(1).expansion.original, 4);
  EXPECT_EQ(record(33, 1, 1, true, 4, 6, 32), Lines{"1 RECONFIGURE 2 to 4 at 39"});
  EXPECT_EQ(coordinator.cores().free(), 6);
  EXPECT_EQ(record(37, 1, 2, true, 6, 4, 39), Lines{"0 OUTCOME 1 cores 2.00 2.00 met"});
  EXPECT_EQ(coordinator.cores().free(), 8);
  EXPECT_NE(app(1).expansion.decision, 0) << "its phase is still to come as predicted";
  EXPECT_EQ(phase(38, 1, 3), Lines{"0 OUTCOME 1 phase-start 6.00 6.00 met"});
  EXPECT_EQ(app(1).expansion.decision, 0);
}

// On two nodes, of which the first is full.
class SteeringOnNodesTest : public SteeringTest {
 protected:
  SteeringOnNodesTest() : SteeringTest(settings_with({{"n1", 4}, {"n2", 8}})) {
    start(1, 4);
    say(31, 4, "n1=4");
  }
  void say(std::int64_t s, std::int64_t processes, const std::string& nodes) {
    at(s, 1, event::Malleable{processes, 30, 0, "merge", 0, nodes});
  }
  Lines done(std::int64_t s, std::uint64_t request, std::int64_t from, std::int64_t to, const std::string& nodes) {
    event::Reconfiguration said;
    said.request = RequestId{request};
    said.done = true;
    said.sources = from;
    said.targets = to;
    said.iteration = 32;
    said.nodes = nodes;
    return at(s, 1, said);
  }
  std::string books() { return text_of(coordinator.cores().shares_of(AppId{1}), 1000); }
};

TEST_F(SteeringOnNodesTest, AReturnLeavesTheNodesThatWereAdded) {
  change(1, 6, 39).start_after = Time{} + seconds{38};
  EXPECT_EQ(poke(32).front(), "1 RECONFIGURE 1 to 6 at 0 on n2 n2");
  EXPECT_EQ(done(33, 1, 4, 6, "n1=4 n2=2"), Lines{"1 RECONFIGURE 2 to 4 at 39 leaving n2=2"});
  EXPECT_EQ(books(), "n1=4 n2=2");
  done(37, 2, 6, 4, "n1=4");
  EXPECT_EQ(books(), "n1=4");
}

TEST_F(SteeringOnNodesTest, WhatWasNotLeftIsGivenToNobodyElse) {
  change(1, 6, 39).start_after = Time{} + seconds{38};
  poke(32);
  done(33, 1, 4, 6, "n1=2 n2=4");
  EXPECT_EQ(books(), "n1=2 n2=4") << "its launcher placed them otherwise";
  done(37, 2, 6, 4, "n1=1 n2=3");
  EXPECT_EQ(books(), "n1=1 n2=3") << "MPI's worlds permitted nothing else";
  start(2, 1, 0);
  ASSERT_EQ(coordinator.cores().free(), 7);
  for (const model::NodeUse& node : coordinator.cores().nodes()) EXPECT_LE(node.taken, node.cores);
}

TEST_F(SteeringOnNodesTest, NewProcessesOnItsOnlyNodeNeedNoName) {
  say(31, 4, "n2=4");
  change(1, 6, 39).start_after = Time{} + seconds{38};
  EXPECT_EQ(poke(32).front(), "1 RECONFIGURE 1 to 6 at 0");
  EXPECT_EQ(books(), "n2=6");
}

TEST_F(SteeringOnNodesTest, CoresAreKeptWhereItWillReturn) {
  say(31, 4, "n1=2 n2=2");
  change(1, 2, 39).start_after = Time{} + seconds{38};
  EXPECT_EQ(poke(32).front(), "1 RECONFIGURE 1 to 2 at 0");
  done(33, 1, 4, 2, "n1=2");
  EXPECT_EQ(books(), "n1=2 n2=2");
}

TEST_F(SteeringOnNodesTest, TextsThatAreNoNodesAreIgnored) {
  say(32, 4, "n1=3");
  EXPECT_EQ(books(), "n1=4") << "three processes are not the four that compute";
  say(32, 4, "n1=x");
  say(33, 4, "n1=2 moon=2");
  EXPECT_EQ(books(), "n1=4") << "they run somewhere";
  say(34, 4, "n2=4");
  EXPECT_EQ(books(), "n2=4");
}

TEST_F(SteeringTest, NodesThatComeMakeRoomForLargerSizes) {
  event::NodeCores node{"node1", 6};
  at(0, 0, node);
  start(1, 4);
  at(31, 1, event::Malleable{4, 30, 0, "merge", 0, "node1=4"});
  change(1, 8, 0);
  EXPECT_EQ(poke(32).front(), "0 DECISION 1 scripted leave app1 4 to 4") << "cores of the settings do not count";
  node = {"node2", 2};
  at(33, 7, node);
  EXPECT_EQ(coordinator.cores().total(), 6) << "only the daemon knows nodes";
  at(34, 0, node);
  change(1, 8, 0);
  phase(40, 1, 3);
  EXPECT_EQ(coordinator.cores().of(AppId{1}), 8);
  node.cores = 0;
  at(45, 0, node);
  EXPECT_EQ(coordinator.cores().total(), 6);
}

TEST_F(SteeringTest, CoresOfNodesThatAreAwayDoNotCountAgainstOthers) {
  event::NodeCores second{"node2", 4};
  at(0, 0, event::NodeCores{"node1", 6});
  at(0, 0, second);
  start(1, 4);
  start(2, 5);
  at(31, 1, event::Malleable{4, 30, 0, "merge", 0, "node1=4"});
  at(31, 2, event::Malleable{5, 30, 0, "merge", 0, "node1=1 node2=4"});
  second.cores = 0;
  at(32, 0, second);
  change(1, 6, 0);
  EXPECT_THAT(poke(33), ::testing::Contains("0 DECISION 1 scripted leave app1 4 to 4"))
      << "the other one has a core of node1";
  change(1, 5, 0);
  EXPECT_THAT(poke(34), ::testing::Contains("1 RECONFIGURE 1 to 5 at 0"));
}

TEST_F(SteeringTest, AnApplicationGrowsThoughANodeOfItsOwnIsAway) {
  event::NodeCores second{"node2", 4};
  at(0, 0, event::NodeCores{"node1", 6});
  at(0, 0, second);
  start(1, 5);
  at(31, 1, event::Malleable{5, 30, 0, "merge", 0, "node1=1 node2=4"});
  second.cores = 0;
  at(32, 0, second);
  change(1, 8, 0);
  EXPECT_THAT(poke(33), ::testing::Contains("1 RECONFIGURE 1 to 8 at 0 on node1 node1 node1"))
      << "it takes three of the five that are free";
}

TEST_F(SteeringTest, APredictionThatWasOffIsSaid) {
  start(1, 4);
  change(1, 6, 39).start_after = Time{} + seconds{38};
  poke(32);
  record(33, 1, 1, true, 4, 6, 32);
  record(37, 1, 2, true, 6, 4, 39);
  EXPECT_EQ(phase(41, 1, 3), Lines{"0 OUTCOME 1 phase-start 6.00 9.00 off"});
}

TEST_F(SteeringTest, ARefusedResizeGivesItsCoresBackAndIsNotAskedForAgainAtOnce) {
  start(1, 4);
  change(1, 6, 39);
  poke(32);
  EXPECT_EQ(record(33, 1, 1, false, 4, 6),
            (Lines{"0 DECISION 2 scripted cancel app1 4 to 4", "0 OUTCOME 1 cores 2.00 2.00 met"}));
  EXPECT_EQ(coordinator.cores().free(), 8);
  EXPECT_EQ(app(1).expansion.decision, 0);
  change(1, 6, 39);
  EXPECT_EQ(poke(34), Lines{"0 DECISION 3 scripted leave app1 4 to 4"});
  change(1, 6, 39);
  EXPECT_EQ(poke(35), Lines{}) << "told once in an I/O period";
  phase(40, 1, 3);
  change(1, 6, 49);
  EXPECT_EQ(poke(42).front(), "1 RECONFIGURE 2 to 6 at 0");
}

// The DECISION about a change that is prevented has the facts of both: the change, and what prevents it.
TEST_F(SteeringTest, AChangeThatIsLeftAloneKeepsItsFacts) {
  start(1, 4);
  const auto prevented = [&](std::int64_t s, std::int64_t processes) {
    change(1, processes, 0).reason = event::EqualPart{8, 2};
    for (const Command& command :
         coordinator.handle(event_of(s * 1000, 0, event::Profile{AppId{1}, 4, 1, 0, 0, 0, 1, 0}))) {
      if (const auto* decision = std::get_if<event::Decision>(&command.body)) return *decision;
    }
    return event::Decision{};
  };
  const event::Decision decision = prevented(32, 20);
  EXPECT_EQ(decision.action, "leave");
  EXPECT_EQ(decision.wanted, 20);
  EXPECT_EQ(decision.to, 4);
  EXPECT_EQ(decision.reason, (event::Reason{event::EqualPart{8, 2}}));
  EXPECT_EQ(decision.obstacle, (event::Reason{event::CoresExceeded{20, steering_cores, 0}}));
  EXPECT_EQ(explain::sentence(decision),
            "app1 goes from 4 to 20 processes: an equal part of the 8 cores that 2 applications share; left alone: 20 "
            "processes for 'app1' are too many: there are 12 cores; ask for fewer, or set 'cores' of [coordinator] in "
            "hocket.toml");
  phase(40, 1, 3);
  EXPECT_EQ(prevented(42, 4).obstacle, event::because(event::circumstance::same_size));
}

TEST_F(SteeringTest, APhaseBeforeTheReturnCancelsIt) {
  start(1, 4);
  change(1, 6, 39).start_after = Time{} + seconds{38};
  poke(32);
  record(33, 1, 1, true, 4, 6, 32);
  EXPECT_EQ(phase(35, 1, 3), (Lines{"0 OUTCOME 1 phase-start 6.00 3.00 off", "0 DECISION 2 scripted cancel app1 6 to 4",
                                    "1 RECONFIGURE 3 to 4 at 0"}));
  EXPECT_EQ(record(37, 1, 3, true, 6, 4), Lines{"0 OUTCOME 1 cores 2.00 2.00 met"});
  EXPECT_EQ(coordinator.cores().free(), 8);
  EXPECT_EQ(app(1).expansion.decision, 0);
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
}

TEST_F(SteeringTest, ACancelledResizeThatHadBegunKeepsItsCoresUntilItIsBack) {
  start(1, 4);
  change(1, 6, 39).start_after = Time{} + seconds{38};
  poke(32);
  EXPECT_EQ(phase(38, 1, 3), (Lines{"0 OUTCOME 1 phase-start 6.00 6.00 met", "0 DECISION 2 scripted cancel app1 4 to 4",
                                    "1 RECONFIGURE 2 to 4 at 0"}));
  EXPECT_EQ(coordinator.cores().free(), 6) << "it may be about to use them";
  record(40, 1, 1, true, 4, 6);
  EXPECT_EQ(coordinator.cores().free(), 6);
  record(41, 1, 2, true, 6, 4);
  EXPECT_EQ(coordinator.cores().free(), 8);
}

TEST_F(SteeringTest, AResizeThatComesTooLateIsUndoneAtOnce) {
  start(1, 4);
  change(1, 6, 39);
  poke(32);
  EXPECT_EQ(record(36, 1, 1, true, 4, 6, 39),
            (Lines{"0 DECISION 2 scripted cancel app1 6 to 4", "1 RECONFIGURE 2 to 4 at 0"}));
}

TEST_F(SteeringTest, WhoNeverAnswersIsToldToGoBackAndKeepsWhatItMayUse) {
  start(1, 4);
  change(1, 6, 39).start_after = Time{} + seconds{38};
  poke(32);
  ASSERT_TRUE(coordinator.deadline());
  const auto due = to_ns(*coordinator.deadline()) / 1'000'000'000;
  EXPECT_EQ(at(due, 0, event::Tick{}),
            (Lines{"0 OUTCOME 1 phase-start 6.00 " + std::to_string(due - 32) + ".00 off",
                   "0 DECISION 2 scripted cancel app1 4 to 4", "1 RECONFIGURE 2 to 4 at 0"}));
  EXPECT_EQ(coordinator.cores().free(), 6);
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
  // The application is alive and shows its size, so no answer is awaited any longer.
  EXPECT_EQ(phase(due + 2000, 1, 3, 4), Lines{"0 OUTCOME 1 cores 2.00 2.00 met"});
  EXPECT_EQ(coordinator.cores().free(), 8);
}

TEST_F(SteeringTest, CoresOfOneThatDiesComeBack) {
  start(1, 4);
  change(1, 6, 39);
  poke(32);
  record(33, 1, 1, true, 4, 6, 32);
  EXPECT_EQ(at(34, 1, event::Lost{}), Lines{"0 OUTCOME 1 cores 2.00 2.00 met"});
  EXPECT_EQ(coordinator.cores().free(), steering_cores);
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
}

TEST_F(SteeringTest, WhatIsNotThereIsNotGiven) {
  start(1, 4);
  start(2, 4);
  change(1, 9, 39);
  EXPECT_EQ(poke(32), Lines{"0 DECISION 1 scripted leave app1 4 to 4"});
  EXPECT_EQ(coordinator.cores().free(), 4);
  for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{-3}, std::int64_t{1} << 62}) {
    change(2, wrong, 39);
    poke(33);
  }
  change(9, 5, 0);
  change(2, 5, 3);
  EXPECT_EQ(poke(34), Lines{});
  EXPECT_EQ(coordinator.cores().free(), 4);
}

TEST_F(SteeringTest, NewApplicationsGetTheCoresOfExpandedOnes) {
  start(1, 4);
  start(2, 4);
  change(1, 6, 0);
  poke(32);
  record(33, 1, 1, true, 4, 6);
  change(2, 6, 39);
  poke(33);
  record(33, 2, 2, true, 4, 6, 31);
  EXPECT_EQ(coordinator.cores().free(), 0);
  EXPECT_EQ(
      hello(3, "job3", "app3", 3, 34'000),
      (Lines{"3 WELCOME app 3 app3 fcfs", "0 DECISION 3 scripted reclaim app2 6 to 4", "2 RECONFIGURE 4 to 4 at 0",
             "0 DECISION 4 scripted reclaim app1 6 to 5", "1 RECONFIGURE 5 to 5 at 0"}))
      << "temporary ones first, and no more than is missing";
  EXPECT_EQ(record(35, 2, 4, true, 6, 4), Lines{"0 OUTCOME 2 cores 2.00 2.00 met"});
  EXPECT_EQ(record(35, 1, 5, true, 6, 5), Lines{"0 OUTCOME 1 cores 1.00 1.00 met"});
  EXPECT_EQ(coordinator.cores().taken_beyond(), 0);
  EXPECT_EQ(app(1).expansion.original, 4);
}

TEST_F(SteeringTest, AnApplicationThatIsAboutToStartWaitsForCoresThatComeBack) {
  start(1, 4);
  change(1, steering_cores, 0);
  poke(32);
  record(33, 1, 1, true, 4, steering_cores);
  EXPECT_EQ(
      at(34, 9, event::AskCores{"job3", "app3", 4, seconds{60}}),
      (Lines{"0 DECISION 2 scripted reclaim app1 12 to 8", "1 RECONFIGURE 2 to 8 at 0", "9 CORES_FOR wait 4 job3"}));
  EXPECT_THAT(record(36, 1, 2, true, steering_cores, 8),
              ::testing::IsSupersetOf({"9 CORES_FOR start 0 job3", "0 DECISION 3 cores start app3 0 to 4"}));
  EXPECT_EQ(coordinator.cores().free(), 0) << "they are kept for it";
  EXPECT_EQ(hello(3, "job3", "app3", 4, 37'000), Lines{"3 WELCOME app 2 app3 fcfs"});
  EXPECT_EQ(coordinator.cores().taken_beyond(), 0) << "it has them once";
}

TEST_F(SteeringTest, AStartThatIsGivenUpTakesNoCores) {
  start(1, 4);
  change(1, steering_cores, 0);
  poke(32);
  record(33, 1, 1, true, 4, steering_cores);
  at(34, 9, event::AskCores{"job3", "app3", 4, seconds{60}});
  at(35, 9, event::Lost{});
  EXPECT_EQ(record(36, 1, 2, true, steering_cores, 8), Lines{"0 OUTCOME 1 cores 4.00 4.00 met"});
  EXPECT_EQ(coordinator.cores().free(), 4);
}

// The time limit of the answer to 8 must not outlive the return to 6.
TEST_F(SteeringTest, AChangeThatIsReclaimedBeforeItIsThereHasNoTimeLimitAfterwards) {
  start(1, 4);
  start(2, 4);
  change(1, 6, 0);
  poke(32);
  record(33, 1, 1, true, 4, 6);
  change(1, 8, 0);
  poke(33);
  EXPECT_EQ(hello(3, "job3", "app3", 2, 34'000).back(), "1 RECONFIGURE 3 to 6 at 0");
  record(34, 1, 2, false, 6, 6);
  record(35, 1, 3, true, 6, 6);
  EXPECT_EQ(app(1).expansion.original, 4);
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
}

TEST_F(SteeringTest, AnotherPolicyUndoesWhatIsForGood) {
  start(1, 4);
  change(1, 6, 0).period_after = seconds{8};
  poke(32);
  record(33, 1, 1, true, 4, 6);
  phase(40, 1, 3);
  EXPECT_EQ(phase(48, 1, 4), Lines{"0 OUTCOME 1 period 8.00 8.00 met"});
  EXPECT_EQ(at(50, 99, event::SetPolicy{"fcfs"}),
            (Lines{"0 DECISION 2 scripted return app1 6 to 4", "1 RECONFIGURE 2 to 4 at 0"}));
  record(51, 1, 2, true, 6, 4);
  EXPECT_EQ(coordinator.cores().free(), 8);
  EXPECT_EQ(app(1).expansion.decision, 0);
}

TEST_F(SteeringTest, AToolsResizeGoesFirst) {
  start(1, 4);
  change(1, 6, 39);
  poke(32);
  EXPECT_EQ(at(33, 99, event::Resize{"app1", 8, false, 0, ""}),
            (Lines{"1 RECONFIGURE 2 to 8 at 0", "0 DECISION 2 scripted cancel app1 4 to 8"}));
  EXPECT_EQ(record(34, 1, 2, true, 4, 8), Lines{"99 RECONFIGURATION 2 done 4 to 8"});
  EXPECT_EQ(coordinator.cores().free(), 4);
  change(1, 6, 0);
  EXPECT_EQ(poke(35), Lines{"0 DECISION 3 scripted leave app1 8 to 8"});
}

TEST_F(SteeringTest, ATemporaryChangeGoesOnTopOfOneForGood) {
  start(1, 4);
  change(1, 6, 0);
  poke(32);
  record(33, 1, 1, true, 4, 6);
  change(1, 8, 39).start_after = Time{} + seconds{38};
  EXPECT_EQ(poke(34).front(), "1 RECONFIGURE 2 to 8 at 0");
  EXPECT_EQ(record(35, 1, 2, true, 6, 8, 33), Lines{"1 RECONFIGURE 3 to 6 at 39"});
  record(37, 1, 3, true, 8, 6, 39);
  phase(38, 1, 3);
  EXPECT_EQ(app(1).expansion.original, 4) << "what is for good still is";
  EXPECT_EQ(coordinator.cores().free(), 6);
}

CoordinatorSettings uncertain_settings() {
  CoordinatorSettings settings = settings_with();
  settings.core.uncertainty = seconds{9};
  return settings;
}

class UncertainTest : public SteeringTest {
 protected:
  UncertainTest() : SteeringTest(uncertain_settings()) {}
  event::Outcome phase_outcome(std::int64_t s) {
    event::IoPhase said;
    said.index = 3;
    said.start = Time{} + seconds{s};
    said.end = said.start + seconds{1};
    said.io = seconds{1};
    for (const Command& command : coordinator.handle(event_of((s + 1) * 1000, 1, said)))
      if (const auto* outcome = std::get_if<event::Outcome>(&command.body)) return *outcome;
    ADD_FAILURE() << "no OUTCOME";
    return {};
  }
};

TEST_F(UncertainTest, AnErrorBeyondHalfAPeriodIsNoPredictionHoweverUncertainItWas) {
  start(1, 4);
  change(1, 6, 0).start_after = Time{} + seconds{38};
  poke(32);
  const event::Outcome outcome = phase_outcome(46);
  EXPECT_FALSE(outcome.met);
  EXPECT_EQ(outcome.uncertainty_s, 9);
  EXPECT_EQ(outcome.period_s, 10);
  EXPECT_EQ(explain::sentence(outcome),
            "start of the next I/O phase: predicted 6.00 s ± 9.00 s, came 14.00 s: 8.00 s later than predicted (80% of "
            "the I/O period), off: what was assumed is too wide to predict anything");
}

TEST_F(UncertainTest, AnErrorIsSaidBesideWhatWasAssumed) {
  start(1, 4);
  change(1, 6, 0).start_after = Time{} + seconds{38};
  poke(32);
  const event::Outcome outcome = phase_outcome(42);
  EXPECT_TRUE(outcome.met);
  EXPECT_EQ(explain::sentence(outcome),
            "start of the next I/O phase: predicted 6.00 s ± 9.00 s, came 10.00 s: 4.00 s later than predicted (40% of "
            "the I/O period), within what was assumed");
}

class PlacesTest : public SteeringTest {
 protected:
  PlacesTest() : SteeringTest(settings_with({{"n1", 6}, {"n2", 6}})) {}
};

TEST_F(PlacesTest, NewProcessesGoWhereTheCoresAre) {
  start(1, 4);
  change(1, 7, 0);
  EXPECT_THAT(poke(32).front(), ::testing::HasSubstr("RECONFIGURE 1 to 7 at 0 on n"));
  EXPECT_EQ(coordinator.cores().of(AppId{1}), 7);
}

class ProbingTest : public SteeringTest {
 protected:
  ProbingTest() : SteeringTest(settings_with({}, true)) {}
};

TEST_F(ProbingTest, MeasuresWhatIsNotKnownAndGoesBack) {
  start(1, 4, 2);
  EXPECT_EQ(app(1).malleability.resizing_to, 6) << "one whole period at its own size was seen";
  record(22, 1, 1, true, 4, 6);
  EXPECT_EQ(phase(30, 1, 2), Lines{}) << "not wholly at 6";
  EXPECT_EQ(phase(40, 1, 3), Lines{}) << "one period says nothing of how much they vary";
  EXPECT_EQ(phase(50, 1, 4), (Lines{"1 RECONFIGURE 2 to 8 at 0", "0 DECISION 2 probe expand app1 6 to 8"}));
  record(52, 1, 2, true, 6, 8);
  for (int i = 5; i < 7; ++i) EXPECT_EQ(phase(10 * (i + 1), 1, i), Lines{});
  EXPECT_EQ(phase(80, 1, 7), Lines{"1 RECONFIGURE 3 to 4 at 0"});
  record(82, 1, 3, true, 8, 4);
  EXPECT_EQ(coordinator.cores().free(), 8);
  EXPECT_EQ(app(1).expansion.decision, 0);
  std::vector<std::int64_t> sizes;
  for (const model::CurvePoint& point : app(1).curve.points()) sizes.push_back(point.processes);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 6, 8}));
  EXPECT_NEAR(app(1).curve.iteration(6).value, 0.9, 1e-9);
  EXPECT_THAT(phase(90, 1, 8), IsEmpty()) << "once is enough";
  EXPECT_EQ(at(95, 1, event::Bye{}), (Lines{"0 PROFILE app 1: 4", "0 PROFILE app 1: 6", "0 PROFILE app 1: 8"}))
      << "and is to be remembered";
}

TEST_F(SteeringTest, WhatAResizeCostsIsLearnt) {
  start(1, 4);
  change(1, 6, 0);
  poke(32);
  EXPECT_FALSE(app(1).malleability.cost_of(6, 8));
  event::Reconfiguration said;
  said.request = RequestId{1};
  said.done = true;
  said.sources = 4;
  said.targets = 6;
  said.started = 2;
  said.stopped = milliseconds{1500};
  at(33, 1, said);
  ASSERT_TRUE(app(1).malleability.cost_of(6, 8));
  EXPECT_DOUBLE_EQ(app(1).malleability.cost_of(6, 8)->value, 1.5);
}

TEST_F(SteeringTest, AnApplicationIsStoppedForASmallShareOfItsTimeOnly) {
  start(1, 4);
  change(1, 6, 0);
  poke(32);
  event::Reconfiguration said;
  said.request = RequestId{1};
  said.done = true;
  said.sources = 4;
  said.targets = 6;
  said.iteration = 30;
  said.stopped = seconds{3};
  at(35, 1, said);
  change(1, 8, 39);
  EXPECT_EQ(poke(100), Lines{"0 DECISION 2 scripted leave app1 6 to 6"}) << "3 s, and 6 s more: 9 % of 100 s";
  change(1, 8, 39);
  EXPECT_EQ(poke(181).front(), "1 RECONFIGURE 2 to 8 at 0") << "5 % of 180 s";
}

TEST_F(SteeringTest, AnApplicationThatKeepsWhatItGetsIsStoppedForMore) {
  start(1, 4);
  change(1, 6, 0);
  poke(32);
  event::Reconfiguration said;
  said.request = RequestId{1};
  said.done = true;
  said.sources = 4;
  said.targets = 6;
  said.stopped = seconds{15};
  at(47, 1, said);
  change(1, 8, 0);
  EXPECT_EQ(poke(50), Lines{"0 DECISION 2 scripted leave app1 6 to 6"}) << "30 s of 50 s";
  change(1, 8, 0);
  EXPECT_EQ(poke(61).front(), "1 RECONFIGURE 2 to 8 at 0");
}

TEST_F(SteeringTest, PredictionsThatKeepMissingAreReliedOnLess) {
  start(1, 4);
  for (int i = 0; i < 3; ++i) {
    const std::int64_t s = 32 + 10 * i;
    const auto request = static_cast<std::uint64_t>(2 * i + 1);
    change(1, 6, 39 + 10 * i).start_after = Time{} + seconds{s + 6};
    poke(s);
    record(s + 1, 1, request, true, 4, 6, 30 + 10 * i + 2);
    record(s + 4, 1, request + 1, true, 6, 4, 39 + 10 * i);
    phase(s + 9, 1, 3 + i);  // 3 s late
    EXPECT_EQ(app(1).reliance.misses, i + 1);
    EXPECT_EQ(app(1).reliance.until_phases, app(1).history.phases() + (2 << i) - 1);
  }
}

// The run has other input than the profile: everything takes twice as long.
TEST_F(ProbingTest, ExtendsAProfileByASizeThatItLacked) {
  start(1, 4, 0);
  for (const std::int64_t size : {2, 4}) {
    at(0, 0, event::Profile{AppId{1}, size, 1.8 / static_cast<double>(size), 0, 1, 0, 4, 0});
  }
  for (int i = 0; i < 2; ++i) phase(10 * (i + 1), 1, i);
  ASSERT_EQ(app(1).malleability.resizing_to, 6) << "nothing is known beyond its size";
  record(22, 1, 1, true, 4, 6);
  for (int i = 2; i < 4; ++i) EXPECT_EQ(phase(10 * (i + 1), 1, i), Lines{});
  EXPECT_EQ(phase(50, 1, 4), (Lines{"1 RECONFIGURE 2 to 8 at 0", "0 DECISION 2 probe expand app1 6 to 8"}));
  const auto commands = coordinator.handle(event_of(55'000, 1, event::Bye{}));
  const auto* remembered = commands.empty() ? nullptr : std::get_if<event::Profile>(&commands.front().body);
  ASSERT_NE(remembered, nullptr);
  EXPECT_EQ(remembered->processes, 6) << "the only one that it lacked";
  EXPECT_NEAR(remembered->iteration_s, 0.45, 1e-9) << "in the profile's measure: it is as fast as with 4";
}

TEST_F(ProbingTest, LeavesAProfileOutThatComesAfterItsOwnMeasurements) {
  start(1, 4, 0);
  for (int i = 0; i < 3; ++i) phase(10 * (i + 1), 1, i);
  ASSERT_TRUE(app(1).curve_is_seen);
  const std::size_t measured = app(1).curve.points().size();
  at(35, 0, event::Profile{AppId{1}, 32, 0.01, 0, 1, 0, 4, 0});
  EXPECT_EQ(app(1).curve.points().size(), measured) << "its input may be another one";
}

TEST_F(ProbingTest, RemembersNothingOfAProfileThatHasAllSizes) {
  start(1, 4, 0);
  for (const std::int64_t size : {2, 4, 8}) {
    at(0, 0, event::Profile{AppId{1}, size, 1.8 / static_cast<double>(size), 0, 1, 0, 4, 0});
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(phase(10 * (i + 1), 1, i), Lines{});
  EXPECT_EQ(at(75, 1, event::Bye{}), Lines{});
}

// The application does no I/O: it reports a second of iterations at a time.
TEST_F(ProbingTest, MeasuresOneThatOnlyComputes) {
  start(1, 4, 0);
  std::int64_t iteration = 0;
  const auto iterate = [&](std::int64_t s, std::int64_t processes) {
    event::Iterations said;
    said.iteration = iteration += 10;
    said.iterations = 10;
    said.processes = processes;
    said.elapsed = said.cpu = from_s(4.0 / static_cast<double>(processes));
    return at(s, 1, said);
  };
  for (int s = 1; s < 4; ++s) EXPECT_THAT(iterate(s, 4), IsEmpty()) << s;
  EXPECT_EQ(iterate(4, 4), (Lines{"1 RECONFIGURE 1 to 6 at 0", "0 DECISION 1 probe expand app1 4 to 6"}));
  record(5, 1, 1, true, 4, 6);
  for (int s = 6; s < 9; ++s) EXPECT_THAT(iterate(s, 6), IsEmpty()) << s;
  EXPECT_EQ(iterate(9, 6), (Lines{"1 RECONFIGURE 2 to 8 at 0", "0 DECISION 2 probe expand app1 6 to 8"}));
  record(10, 1, 2, true, 6, 8);
  for (int s = 11; s < 14; ++s) iterate(s, 8);
  EXPECT_EQ(iterate(14, 8), Lines{"1 RECONFIGURE 3 to 4 at 0"});
  record(15, 1, 3, true, 8, 4);
  EXPECT_EQ(coordinator.cores().free(), 8);
  EXPECT_NEAR(app(1).curve.speedup(4, 8), 2, 1e-9);
}

TEST_F(ProbingTest, IsGivenUpWhereNoCoresAreFree) {
  start(2, 7, 0);
  start(1, 4, 4);
  EXPECT_EQ(app(2).malleability.resizing_to, 0);
  EXPECT_EQ(coordinator.cores().free(), 1);
}

}  // namespace
}  // namespace hocket::coordinator
