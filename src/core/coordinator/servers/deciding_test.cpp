// Tests what the coordinator does of what a servers policy wants, and what it ignores.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"
#include "explain/explain.hpp"

namespace hocket::coordinator {
namespace {

using policy::ServerChange;
using testing::Lines;
using Action = ServerChange::Action;

// What the policy under test wants. It is global because a policy is a plain function.
std::function<policy::ServerDecision(const policy::ServersView&)> wants;
const policy::ServerPolicy mine{"mine", "",
                                [](const policy::ServersView& view, const event::Event&) { return wants(view); }};
const policy::ServerPolicy other_policy{
    "other", "", [](const policy::ServersView&, const event::Event&) -> policy::ServerDecision { return {}; }};

class DecidingTest : public testing::Script {
 protected:
  DecidingTest() : Script(settings()) {
    wants = [](const policy::ServersView&) { return policy::ServerDecision{}; };
  }

  static CoordinatorSettings settings() {
    CoordinatorSettings made = testing::usual_settings();
    made.policy.servers = &mine;
    made.loaded.servers = &other_policy;
    return made;
  }
  // A DECISION with its sentence.
  std::optional<std::string> line_of(const Command& command) override {
    if (const auto* made = std::get_if<event::Decision>(&command.body)) {
      return std::to_string(made->number) + " " + std::string{made->policy} + ": " + explain::heading(*made) + ": " +
             explain::sentence(*made);
    }
    return testing::describe(command);
  }
  Lines server(std::int64_t ms, std::uint64_t number) {
    const std::string name = "s" + std::to_string(number);
    return at(ms, 10 + number, event::Server{name, "unix:/" + name, "/scratch", 1 << 20, false, 77});
  }
  // Has the policy want these changes at the next event only, which comes at that time.
  Lines decide(std::int64_t ms, std::vector<ServerChange> changes) {
    wants = [&](const policy::ServersView&) { return policy::ServerDecision{changes}; };
    Lines lines = at(ms, 11, event::ServerLoad{});
    wants = [](const policy::ServersView&) { return policy::ServerDecision{}; };
    return lines;
  }
  static ServerChange to(Action action, const std::string& server, const std::string& text = {}) {
    return {action, server, {}, {}, {}, text};
  }
  static ServerChange assign(std::uint64_t app, std::vector<std::string> servers, const std::string& text = {}) {
    return {Action::assign, {}, {}, AppId{app}, std::move(servers), text};
  }

  static ServerChange weigh(const std::string& server, std::int64_t weight, const std::string& text = {}) {
    ServerChange change = to(Action::weigh, server, text);
    change.weight = weight;
    return change;
  }
  static ServerChange schedule(const std::string& server, const std::string& name, const std::string& text = {}) {
    ServerChange change = to(Action::schedule, server, text);
    change.scheduler = name;
    return change;
  }
  static ServerChange weigh_application(std::uint64_t app, std::int64_t weight, const std::string& text = {}) {
    ServerChange change;
    change.action = Action::weigh_application;
    change.application = AppId{app};
    change.weight = weight;
    change.text = text;
    return change;
  }
  // A server that carries out forwarded calls, and what it says about its scheduler.
  Lines scheduling_server(std::uint64_t number, const std::string& by) {
    const std::string name = "s" + std::to_string(number);
    event::Server said{name, "unix:/" + name, "/scratch", 1 << 20, false, 77};
    said.scheduler = "fifo";
    said.scheduler_by = by;
    return at(0, 10 + number, said);
  }
  Lines used(std::uint64_t number, const std::string& name, const std::string& by, const std::string& error = {}) {
    event::SchedulerUsed said{"s" + std::to_string(number), name, "fifo", 0};
    said.scheduler_by = by;
    said.error = event::Prose{error};
    return at(1, 10 + number, said);
  }
  static ServerChange tune(std::uint64_t app, std::optional<std::int64_t> aggregators,
                           std::optional<std::int64_t> buffer_bytes = {}, std::optional<std::string> method = {}) {
    ServerChange change;
    change.action = Action::tune;
    change.application = AppId{app};
    change.aggregators = aggregators;
    change.buffer_bytes = buffer_bytes;
    change.method = std::move(method);
    return change;
  }
  static constexpr std::uint64_t tool = 99;
};

TEST_F(DecidingTest, WhatAPolicyDrainsMovesItsDataSets) {
  for (std::uint64_t i = 1; i <= 2; ++i) {
    const std::string name = "s" + std::to_string(i);
    event::Server said{name, "unix:/" + name, "/scratch", 1 << 20, false, 77};
    said.exchange_bytes = 1;
    at(0, 10 + i, said);
  }
  const Lines told = decide(1000, {to(Action::drain, "s2")});
  ASSERT_GE(told.size(), 2U);
  EXPECT_EQ(told[0], "11 MOVE_DATA_SETS 1 to s1 from s2");
  EXPECT_EQ(told[1], "12 MOVE_DATA_SETS 2 to s1 from s2");
  EXPECT_TRUE(coordinator.servers().describe(Time{})[1].moves_data_sets);
}

TEST_F(DecidingTest, DrainsAddsAndSetsAside) {
  hello(1);
  for (std::uint64_t i = 1; i <= 3; ++i) server(0, i);
  EXPECT_EQ(decide(1000, {to(Action::drain, "s2", "too near")}),
            (Lines{"1 SERVER_MAP 4 s1 s3",
                   "1 mine: s2 leaves the server map: too near; I/O servers from epoch 4 on: s1, s3"}));
  EXPECT_EQ(decide(1001, {to(Action::drain, "s2")}), Lines{}) << "it is";
  EXPECT_EQ(decide(9000, {to(Action::add, "s2")}),
            (Lines{"1 SERVER_MAP 5 s1 s2 s3",
                   "2 mine: s2 enters the server map again: I/O servers from epoch 5 on: s1, s2, s3"}));
  EXPECT_EQ(decide(9001, {to(Action::set_aside, "s3")}),
            (Lines{"0 SLOW_IO_SERVER s3 for 10000", "1 SERVER_MAP 6 s1 s2"}))
      << "slow servers are set aside at once";
}

TEST_F(DecidingTest, SchedulesServersForWhichNobodyElseHasChosen) {
  scheduling_server(1, "default");
  scheduling_server(2, "");
  EXPECT_EQ(decide(1000, {schedule("s1", "wfq", "two wait"), schedule("s2", "wfq"), schedule("s9", "wfq")}),
            (Lines{"11 USE_SCHEDULER wfq by policy",
                   "1 mine: s2 is left alone: left alone: the scheduler of 's2' was chosen by hand",
                   "2 mine: s9 is left alone: left alone: no I/O server called 's9' runs"}));
  EXPECT_EQ(decide(1001, {schedule("s1", "wfq"), schedule("s2", "wfq")}), Lines{}) << "it is on its way, or was said";
  EXPECT_EQ(used(1, "wfq", "policy"),
            Lines{"3 mine: s1 orders accesses by another scheduler: two wait; the policy changed the request "
                  "scheduler from 'fifo' to 'wfq'"});
  EXPECT_EQ(decide(2000, {schedule("s1", "wfq")}), Lines{}) << "it is so";
  EXPECT_EQ(
      decide(3000, {schedule("s1", "sjf")}),
      Lines{"4 mine: s1 is left alone: left alone: 's1' was changed 2.00 s ago, and a policy changes it every 5.00 "
            "s at most"});
  EXPECT_EQ(decide(6000, {schedule("s1", "sjf")}), Lines{"11 USE_SCHEDULER sjf by policy"});
}

TEST_F(DecidingTest, AnOperatorsSchedulerGoesFirstUntilItIsGivenBack) {
  scheduling_server(1, "default");
  decide(1000, {schedule("s1", "wfq")});
  used(1, "wfq", "policy");
  at(1500, tool, event::SetServer{"s1", "scheduler", {}, "sjf"});
  EXPECT_EQ(decide(9000, {schedule("s1", "wfq")}),
            Lines{"2 mine: s1 is left alone: left alone: the scheduler of 's1' was chosen by hand"})
      << "also before the server has answered";
  used(1, "sjf", "");
  EXPECT_EQ(decide(19000, {schedule("s1", "wfq")}), Lines{}) << "it was said";
  at(20000, tool, event::SetServer{"s1", "scheduler", {}, "default"});
  EXPECT_EQ(decide(29000, {schedule("s1", "wfq")}), Lines{"11 USE_SCHEDULER wfq by policy"});
}

TEST_F(DecidingTest, ASchedulerThatAServerDoesNotKnowIsSaidOnce) {
  scheduling_server(1, "default");
  decide(1000, {schedule("s1", "wffq")});
  EXPECT_EQ(used(1, "fifo", "policy", "unknown request scheduler 'wffq'"),
            Lines{"1 mine: s1 is left alone: left alone: 's1' refused the scheduler 'wffq': unknown request scheduler "
                  "'wffq'"});
  EXPECT_EQ(decide(9000, {schedule("s1", "wffq")}), Lines{});
  EXPECT_EQ(decide(9001, {schedule("s1", "wfq")}), Lines{"11 USE_SCHEDULER wfq by policy"});
}

TEST_F(DecidingTest, GivesApplicationsWeightsUnlessAnOperatorHas) {
  hello(1, "a", "a");
  hello(2, "b", "b");
  scheduling_server(1, "default");
  event::SetServer set{"", "weight", "b"};
  set.weight = 2;
  at(500, tool, set);
  EXPECT_EQ(
      decide(1000, {weigh_application(1, 3, "it is late"), weigh_application(2, 3), weigh_application(7, 3)}),
      (Lines{"11 APPLICATION_WEIGHT a 3",
             "2 mine: a gets another weight in I/O servers: it is late; the policy changed its weight beside other "
             "applications from 1 to 3",
             "3 mine: b is left alone: left alone: the weight of 'b' was chosen by hand"}));
  EXPECT_EQ(decide(1001, {weigh_application(1, 3)}), Lines{}) << "it is so";
  EXPECT_EQ(decide(1002, {weigh_application(1, 1001)}),
            Lines{"4 mine: a is left alone: left alone: invalid weight '1001': must be 1 to 1000"});
}

TEST_F(DecidingTest, WhatAPolicyHasScheduledAndWeighedEndsWithIt) {
  hello(1, "a", "a");
  scheduling_server(1, "default");
  decide(1000, {schedule("s1", "wfq"), weigh_application(1, 3)});
  used(1, "wfq", "policy");
  const Lines ended = at(2000, tool, event::SetPolicy{"other"});
  EXPECT_NE(std::ranges::find(ended, "11 USE_SCHEDULER  by default"), ended.end());
  EXPECT_NE(std::ranges::find(ended, "11 APPLICATION_WEIGHT a 1"), ended.end());
}

TEST_F(DecidingTest, SeesServersAndTheirLoad) {
  hello(1);
  server(0, 1);
  server(0, 2);
  wants = [](const policy::ServersView& view) {
    EXPECT_EQ(view.servers.size(), 2U);
    EXPECT_EQ(view.cluster.applications().size(), 1U);
    const policy::ServerStatus& first = view.servers.front();
    EXPECT_EQ(first.name, "s1");
    EXPECT_EQ(first.state, "up");
    EXPECT_EQ(first.queue, 3);
    EXPECT_EQ(first.held_bytes, 4096);
    EXPECT_EQ(first.operations_per_s, 10);
    EXPECT_EQ(first.busy, std::chrono::milliseconds{20});
    EXPECT_EQ(first.last_service, std::chrono::milliseconds{2});
    return policy::ServerDecision{};
  };
  at(5, 11, event::ServerLoad{10, 10 << 20, std::chrono::milliseconds{20}, 3, 4096, {}});
}

TEST_F(DecidingTest, IgnoresWhatCannotBeAndSaysSoOnce) {
  hello(1);
  server(0, 1);
  EXPECT_EQ(decide(1, {to(Action::drain, "s1")}),
            Lines{"1 mine: s1 is left alone: left alone: 's1' is the last I/O server that is up"});
  EXPECT_EQ(decide(2, {to(Action::set_aside, "s1")}), Lines{}) << "it was said";
  EXPECT_EQ(decide(3, {to(Action::drain, "s9", "why")}),
            Lines{"2 mine: s9 is left alone: why; left alone: no I/O server called 's9' runs"});
  EXPECT_EQ(decide(4, {to(Action::drain, "s8")}), Lines{}) << "names that are made up do not fill the log";
  server(5, 2);
  at(6, 12, event::Lost{});
  EXPECT_EQ(decide(7, {to(Action::add, "s2")}),
            Lines{"3 mine: s2 is left alone: left alone: no I/O server called 's2' runs"});
}

TEST_F(DecidingTest, APolicyThatChangesItsMindAtEveryEventIsHeldBack) {
  hello(1);
  for (std::uint64_t i = 1; i <= 2; ++i) server(0, i);
  std::size_t maps = 0, decisions = 0;
  for (std::int64_t ms = 1000; ms < 31'000; ms += 50) {
    const bool is_up = coordinator.servers().describe(Time{}).back().state == "up";
    for (const std::string& line : decide(ms, {to(is_up ? Action::drain : Action::add, "s2")})) {
      (line.find("SERVER_MAP") != std::string::npos ? maps : decisions)++;
    }
  }
  EXPECT_EQ(maps, 6U) << "in 30 s";
  EXPECT_EQ(decisions, 12U) << "each change, and that the next one was held back";
}

TEST_F(DecidingTest, WhatWasDrainedByHandStays) {
  for (std::uint64_t i = 1; i <= 2; ++i) server(0, i);
  at(1, tool, event::SetServer{"s2", "drain"});
  EXPECT_EQ(decide(2, {to(Action::add, "s2")}),
            Lines{"1 mine: s2 is left alone: left alone: 's2' was drained by hand"});
  at(3, tool, event::SetServer{"s2", "add"});
  EXPECT_EQ(decide(4, {to(Action::drain, "s2")}).size(), 1U);
}

TEST_F(DecidingTest, WhatAPolicyDrainedIsAddedWhenItEnds) {
  hello(1);
  for (std::uint64_t i = 1; i <= 3; ++i) server(0, i);
  at(1, tool, event::SetServer{"s1", "drain"});
  decide(2, {to(Action::drain, "s2")});
  EXPECT_EQ(at(3, tool, event::SetPolicy{"fcfs+other"}), Lines{"1 SERVER_MAP 6 s2 s3"});
  EXPECT_EQ(at(4, tool, event::SetPolicy{"fcfs+other"}), Lines{});
}

TEST_F(DecidingTest, AssignsServersToAnApplication) {
  hello(1), hello(2, "job-b", "b");
  for (std::uint64_t i = 1; i <= 3; ++i) server(0, i);
  EXPECT_EQ(decide(1, {assign(1, {"s2", "s1"}, "it is first")}),
            (Lines{"1 SERVER_MAP 4 s1 s2",
                   "1 mine: app gets other I/O servers: it is first; I/O servers from epoch 4 on: s1, s2"}));
  EXPECT_EQ(decide(2, {assign(1, {"s1", "s2"})}), Lines{}) << "it has them";
  EXPECT_EQ(decide(6000, {assign(1, {})}),
            (Lines{"1 SERVER_MAP 5 s1 s2 s3",
                   "2 mine: app gets other I/O servers: I/O servers from epoch 5 on: s1, s2, s3"}));
  EXPECT_EQ(decide(7000, {assign(9, {"s1"})}), Lines{}) << "it has left";
}

TEST_F(DecidingTest, IgnoresAssignmentsThatCannotBe) {
  hello(1);
  for (std::uint64_t i = 1; i <= 2; ++i) server(0, i);
  at(0, 12, event::Lost{});
  EXPECT_EQ(decide(1, {assign(1, {"s1", "s2"})}),
            Lines{"1 mine: app is left alone: left alone: no I/O server called 's2' runs"});
  EXPECT_EQ(decide(1, {assign(1, {"s3"})}), Lines{}) << "it was said";
  at(2, 22, event::Server{"s2", "unix:/s2", "/scratch", 1 << 20, false, 77});
  EXPECT_EQ(decide(2, {assign(1, {"s1"})}).size(), 2U);
  EXPECT_EQ(decide(3, {assign(1, {"s2"})}),
            Lines{"3 mine: app is left alone: left alone: 'app' was changed 0.00 s ago, and a policy changes it every "
                  "5.00 s at most"});
  at(4, 1, event::MapAdopted{3});
  EXPECT_EQ(decide(10'000, {assign(1, {"s2"})}),
            Lines{"4 mine: app is left alone: left alone: 'app' has not adopted its last server map yet"});
  EXPECT_EQ(decide(62'003, {assign(1, {"s2"})}).size(), 2U) << "it does not wait for ever";
  at(63'000, tool, event::SetServer{"s1", "assign", "app"});
  EXPECT_EQ(decide(130'000, {assign(1, {"s2"})}),
            Lines{"6 mine: app is left alone: left alone: the I/O servers of 'app' were assigned by hand"});
}

TEST_F(DecidingTest, WhatAPolicyAssignedIsTakenBackWhenItEnds) {
  hello(1), hello(2, "job-b", "b");
  for (std::uint64_t i = 1; i <= 2; ++i) server(0, i);
  decide(1, {assign(1, {"s1"})});
  at(2, tool, event::SetServer{"s2", "assign", "b"});
  EXPECT_EQ(at(3, tool, event::SetPolicy{"fcfs+other"}), Lines{"1 SERVER_MAP 5 s1 s2"});
}

TEST_F(DecidingTest, SeesWhatIsAssigned) {
  hello(1);
  for (std::uint64_t i = 1; i <= 2; ++i) server(0, i);
  decide(1, {assign(1, {"s2"})});
  at(2, 1, event::MapAdopted{3});
  wants = [](const policy::ServersView& view) {
    EXPECT_EQ(view.assigned.size(), 1U);
    EXPECT_EQ(view.assigned[0].application, AppId{1});
    EXPECT_EQ(view.assigned[0].servers, std::vector<std::string_view>{"s2"});
    EXPECT_EQ(view.assigned[0].epoch, 3);
    EXPECT_EQ(view.assigned[0].adopted, 3);
    EXPECT_FALSE(view.assigned[0].by_hand);
    return policy::ServerDecision{};
  };
  at(3, 11, event::ServerLoad{});
}

// ---- weights -------------------------------------------------------------------------------------------------------

TEST_F(DecidingTest, WeighsServersInOneNewMap) {
  hello(1);
  for (std::uint64_t i = 1; i <= 3; ++i) server(0, i);
  EXPECT_EQ(decide(1000, {weigh("s2", 2, "it is loaded"), weigh("s3", 6)}),
            (Lines{"1 SERVER_MAP 4 s1 s2*2 s3*6",
                   "1 mine: s2 gets another share of the stripes: it is loaded; I/O servers from epoch 4 on: s1, s2 "
                   "(weight 2 of 8), s3 (weight 6 of 8)",
                   "2 mine: s3 gets another share of the stripes: I/O servers from epoch 4 on: s1, s2 (weight 2 of 8), "
                   "s3 (weight 6 of 8)"}));
  EXPECT_EQ(decide(9000, {weigh("s2", 2)}), Lines{}) << "it has it";
  EXPECT_EQ(coordinator.servers().describe(Time{})[1].weight, 2);
  EXPECT_EQ(decide(9001, {to(Action::drain, "s3")}).front(), "1 SERVER_MAP 5 s1 s2*2");
  EXPECT_EQ(decide(19'000, {to(Action::add, "s3")}).front(), "1 SERVER_MAP 6 s1 s2*2 s3*6") << "it keeps its weight";
  at(19'001, 13, event::Lost{});
  EXPECT_EQ(server(19'002, 3).back(), "1 SERVER_MAP 8 s1 s2*2 s3") << "a new process begins anew";
}

TEST_F(DecidingTest, OwnMapsHaveTheWeightsToo) {
  hello(1), hello(2, "job-b", "b");
  for (std::uint64_t i = 1; i <= 3; ++i) server(0, i);
  decide(1, {assign(1, {"s1", "s2"}), weigh("s2", 4)});
  EXPECT_EQ(decide(6000, {weigh("s1", 3)}),
            (Lines{"1 SERVER_MAP 6 s1*3 s2*4", "2 SERVER_MAP 6 s1*3 s2*4 s3",
                   "3 mine: s1 gets another share of the stripes: I/O servers from epoch 6 on: s1 (weight 3 of 8), s2 "
                   "(weight 4 of 8), s3"}));
}

TEST_F(DecidingTest, ServersThatWriteBehindStoreBeforeTheirWeightsChange) {
  hello(1);
  at(0, 11, event::Server{"s1", "unix:/s1", "/scratch", 1 << 20, true, 77});
  at(0, 11, event::MapStored{1});
  server(0, 2);
  at(0, 11, event::MapStored{2});
  EXPECT_EQ(decide(1000, {weigh("s2", 2)}).front(), "11 SERVER_MAP 3 s1 s2*2");
  EXPECT_EQ(coordinator.servers().describe(Time{})[1].weight, 8) << "as applications have it";
  EXPECT_EQ(at(1001, 11, event::MapStored{3}), Lines{"1 SERVER_MAP 3 s1 s2*2"});
  EXPECT_EQ(coordinator.servers().describe(Time{})[1].weight, 2);
}

TEST_F(DecidingTest, IgnoresWeightsThatCannotBeAndSaysSoOnce) {
  hello(1);
  for (std::uint64_t i = 1; i <= 2; ++i) server(0, i);
  EXPECT_EQ(decide(1, {weigh("s1", 0)}),
            Lines{"1 mine: s1 is left alone: left alone: invalid weight '0': must be 1 to 8"});
  EXPECT_EQ(decide(2, {weigh("s1", -3), weigh("s1", 9)}), Lines{}) << "it was said";
  EXPECT_EQ(decide(3, {weigh("s2", std::numeric_limits<std::int64_t>::max())}),
            Lines{"2 mine: s2 is left alone: left alone: invalid weight '9223372036854775807': must be 1 to 8"});
  EXPECT_EQ(decide(4, {weigh("s9", 3)}), Lines{"3 mine: s9 is left alone: left alone: no I/O server called 's9' runs"});
  EXPECT_EQ(decide(5, {weigh("s2", 4), weigh("s1", 0)}).front(), "1 SERVER_MAP 3 s1 s2*4") << "others are weighed";
  EXPECT_EQ(decide(6, {weigh("s1", 4)}),
            Lines{"5 mine: s1 is left alone: left alone: the weights of I/O servers were changed lately, and a policy "
                  "changes them every 5 s at most"});
}

TEST_F(DecidingTest, WeightsThatChangeAtEveryEventAreHeldBack) {
  hello(1);
  for (std::uint64_t i = 1; i <= 3; ++i) server(0, i);
  std::size_t maps = 0, decisions = 0;
  for (std::int64_t ms = 1000; ms < 31'000; ms += 50) {
    const std::int64_t weight = 1 + ms / 50 % 8;
    for (const std::string& line : decide(ms, {weigh("s1", weight), weigh("s2", 9 - weight), weigh("s3", weight)})) {
      (line.find("SERVER_MAP") != std::string::npos ? maps : decisions)++;
    }
  }
  EXPECT_EQ(maps, 6U) << "in 30 s";
  EXPECT_LE(decisions, 36U) << "each change of the three, and that the next one was held back";
}

TEST_F(DecidingTest, WeightsAreEqualAgainWhenThePolicyEnds) {
  hello(1);
  for (std::uint64_t i = 1; i <= 2; ++i) server(0, i);
  decide(1, {weigh("s2", 2)});
  EXPECT_EQ(at(2, tool, event::SetPolicy{"fcfs+other"}), Lines{"1 SERVER_MAP 4 s1 s2"});
}

// ---- settings of collective I/O ------------------------------------------------------------------------------------

TEST_F(DecidingTest, TunesTheCollectiveIoOfAnApplicationOnly) {
  hello(1), hello(2, "job-b", "b");
  server(0, 1);
  EXPECT_EQ(decide(1, {tune(1, 2, 1 << 16, "list")}),
            (Lines{"1 SERVER_MAP 2 s1 tuned: 2 65536 list",
                   "1 mine: app gets other settings of its collective I/O: collective I/O from epoch 2 on: 2 "
                   "aggregators, 65536 bytes of buffer, method 'list'"}));
  EXPECT_EQ(decide(2, {tune(1, 2, 1 << 16, "list")}), Lines{}) << "it is so";
  EXPECT_EQ(decide(6000, {tune(1, 1)}),
            (Lines{"1 SERVER_MAP 3 s1 tuned: 1 0 ",
                   "2 mine: app gets other settings of its collective I/O: collective I/O from epoch 3 on: 1 "
                   "aggregator"}));
  EXPECT_EQ(server(6001, 2), (Lines{"1 SERVER_MAP 4 s1 s2 tuned: 1 0 ", "2 SERVER_MAP 4 s1 s2"}));
  EXPECT_EQ(hello(3, "job", "app").back(), "3 SERVER_MAP 4 s1 s2 tuned: 1 0 ") << "each of its members";
  EXPECT_EQ(decide(12'000, {tune(1, {})}).back(),
            "3 mine: app gets other settings of its collective I/O: collective I/O from epoch 5 on: hints and "
            "defaults");
  EXPECT_EQ(decide(12'001, {tune(9, 2)}), Lines{}) << "it has left";
}

TEST_F(DecidingTest, TunesWithoutAnyServer) {
  hello(1);
  wants = [](const policy::ServersView&) { return policy::ServerDecision{{tune(1, 4)}}; };
  EXPECT_EQ(at(1, 1, event::IoPhase{}).front(), "1 SERVER_MAP 1 tuned: 4 0 ");
}

TEST_F(DecidingTest, IgnoresSettingsThatCannotBeAndSaysSoOnce) {
  hello(1);
  server(0, 1);
  const auto ignored = [&](std::int64_t ms, const ServerChange& change) {
    const Lines lines = decide(ms, {change});
    return lines.empty() ? std::string{} : lines.front().substr(lines.front().rfind("left alone: ") + 12);
  };
  EXPECT_EQ(ignored(1, tune(1, 0)), "invalid aggregators '0': must be 1 to 4");
  EXPECT_EQ(ignored(2, tune(1, 5)), "") << "it was said";
  EXPECT_EQ(ignored(3, tune(1, 2, 0)), "invalid buffer_bytes '0': must be 4096 to 67108864");
  EXPECT_EQ(ignored(4, tune(1, 2, std::int64_t{1} << 40)), "") << "it was said";
  EXPECT_EQ(ignored(5, tune(1, {}, {}, "fast")), "invalid method 'fast': must be 'auto', 'view' or 'list'");
  EXPECT_EQ(decide(6, {tune(1, 4, 4096, "view")}).front(), "1 SERVER_MAP 2 s1 tuned: 4 4096 view");
  EXPECT_EQ(ignored(7, tune(1, 5)), "invalid aggregators '5': must be 1 to 4") << "of 4 processes";
  EXPECT_EQ(ignored(8, tune(1, 3)), "'app' was changed 0.00 s ago, and a policy changes it every 5.00 s at most");
  at(9, 1, event::MapAdopted{1});
  EXPECT_EQ(ignored(6000, tune(1, 3)), "'app' has not adopted its last server map yet");
}

TEST_F(DecidingTest, SaysOnceThatHintsGoFirstAndShowsWhatIsUsed) {
  hello(1);
  server(0, 1);
  at(1, 1, event::MapAdopted{1, {1, 2, "auto"}, "method"});
  decide(2, {tune(1, 2, {}, "list")});
  const event::MapAdopted said{2, {3, 1 << 20, "list"}, "aggregators"};
  EXPECT_EQ(at(3, 1, said), Lines{"2 mine: app is left alone: left alone: hints of 'app' go first: aggregators"});
  EXPECT_EQ(at(4, 1, said), Lines{});
  wants = [](const policy::ServersView& view) {
    EXPECT_EQ(view.tuned.size(), 1U);
    EXPECT_EQ(view.tuned[0].application, AppId{1});
    EXPECT_EQ(view.tuned[0].wanted, (event::Tuning{2, 0, "list"}));
    EXPECT_EQ(view.tuned[0].used, (event::Tuning{3, 1 << 20, "list"}));
    EXPECT_EQ(view.tuned[0].hinted, "aggregators");
    return policy::ServerDecision{};
  };
  at(5, 11, event::ServerLoad{});
}

TEST_F(DecidingTest, SettingsAreTakenBackWhenThePolicyEnds) {
  hello(1);
  server(0, 1);
  decide(1, {tune(1, 2)});
  EXPECT_EQ(at(2, tool, event::SetPolicy{"fcfs+other"}), Lines{"1 SERVER_MAP 3 s1"});
}

}  // namespace
}  // namespace hocket::coordinator
