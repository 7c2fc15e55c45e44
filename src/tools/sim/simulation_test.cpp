#include "sim/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "policy/combination.hpp"
#include "sim/simulation_testing.hpp"
#include "trace/reader.hpp"

namespace hocket::sim {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::Field;
using testing::scenario_of;
using testing::settings_of;

ApplicationSpec program(const std::string& name, double iteration_s, double bytes, std::int64_t phases) {
  ApplicationSpec spec;
  spec.name = name;
  spec.target = "disk";
  spec.processes = 4;
  spec.iterations = 10 * phases;
  spec.iterations_per_phase = 10;
  for (const std::int64_t processes : {2, 4, 8}) {
    model::CurvePoint point;
    point.processes = processes;
    point.iteration_s = iteration_s * 4 / static_cast<double>(processes);
    EXPECT_TRUE(spec.curve.add(point));
  }
  spec.io_bytes = bytes;
  spec.flop_per_iteration = 1e9;
  return spec;
}

SimulationReport run(const Scenario& scenario, const policy::Policy* access = nullptr) {
  std::unique_ptr<Controller> controller;
  if (access != nullptr) controller = std::make_unique<Controller>(settings_of(*access));
  return Simulation{scenario, std::move(controller)}.run();
}

// Eight cores: the first application has four, and policy `fair` gives it the others. The second one comes at 42.1 s.
class CoresBeforeAStart : public ::testing::Test {
 protected:
  static Scenario scenario(double wait_for_cores_s) {
    ApplicationSpec first = program("a", 0.5, 100, 40);  // `fair` decides after its I/O phases
    first.malleable = true;
    ApplicationSpec second = program("b", 0.5, 0, 4);
    second.start_s = 42.1;
    second.wait_for_cores_s = wait_for_cores_s;
    Scenario scenario = scenario_of({first, second});
    scenario.cores_per_node = 8;
    return scenario;
  }
  static coordinator::CoordinatorSettings settings(const policy::CorePolicy* sharing) {
    coordinator::CoordinatorSettings settings = settings_of(policy::fcfs);
    settings.policy.sharing = sharing;
    settings.cores = 8;
    settings.probe = false;
    return settings;
  }
  static SimulationReport simulate(double wait_for_cores_s, const policy::CorePolicy* sharing) {
    const Scenario asked = scenario(wait_for_cores_s);
    return Simulation{asked, std::make_unique<Controller>(settings(sharing))}.run();
  }
};

TEST_F(CoresBeforeAStart, AreAwaitedWhileAnotherOneReturnsThem) {
  const SimulationReport report = simulate(60, &policy::fair);
  const ApplicationResult& first = report.applications.at(0);
  const ApplicationResult& second = report.applications.at(1);
  EXPECT_GE(first.reconfigurations, 2) << "it grew, and gave back";
  EXPECT_GT(second.cores_wait_s, 0);
  EXPECT_LT(second.cores_wait_s, 3) << "until a control point, and for a reconfiguration";
  EXPECT_DOUBLE_EQ(second.start_s, 42.1 + second.cores_wait_s);
  EXPECT_NEAR(second.total_s(), 20, 1e-6) << "all cores are its own";
}

TEST_F(CoresBeforeAStart, AreAwaitedNoLongerThanTheBound) {
  const SimulationReport report = simulate(0.1, &policy::fair);
  EXPECT_DOUBLE_EQ(report.applications.at(1).cores_wait_s, 0.1);
}

TEST_F(CoresBeforeAStart, AreNotAwaitedIfNobodyReturnsThem) {
  EXPECT_EQ(simulate(60, nullptr).applications.at(1).cores_wait_s, 0);
}

TEST_F(CoresBeforeAStart, AreNotAskedForWithoutAControllerOrTheKey) {
  EXPECT_EQ(simulate(0, &policy::fair).applications.at(1).start_s, 42.1);
  const Scenario alone = scenario(60);
  EXPECT_EQ(Simulation(alone, nullptr).run().applications.at(1).start_s, 42.1);
}

// In a strict queue the application asks when its turn comes. The third one finds no node free until the second ends.
TEST_F(CoresBeforeAStart, AreAskedForWhenTheQueueLetsItStart) {
  Scenario queue = scenario(60);
  queue.fifo = true;
  queue.nodes = 8;
  queue.cores_per_node = 1;
  queue.applications.push_back(queue.applications[1]);
  queue.applications[2].name = "c";
  for (ApplicationSpec& one : queue.applications) one.nodes = 4;
  const SimulationReport report = Simulation{queue, std::make_unique<Controller>(settings(&policy::fair))}.run();
  const ApplicationResult& second = report.applications.at(1);
  const ApplicationResult& third = report.applications.at(2);
  EXPECT_GT(second.cores_wait_s, 0);
  EXPECT_LT(second.cores_wait_s, 3);
  EXPECT_DOUBLE_EQ(third.start_s, 42.1 + third.cores_wait_s);
  EXPECT_GE(third.start_s, second.end_s);
}

// A controller that does not answer ASK_CORES.
class Silent : public Controller {
 public:
  using Controller::Controller;
  const std::vector<coordinator::Command>& send(Time now, const MemberIdentity& from, event::Body body) override {
    static const std::vector<coordinator::Command> none;
    if (std::holds_alternative<event::AskCores>(body)) return none;
    return Controller::send(now, from, std::move(body));
  }
};

TEST_F(CoresBeforeAStart, AreNotAwaitedForEverIfNoAnswerComes) {
  const Scenario asked = scenario(60);
  const SimulationReport report = Simulation{asked, std::make_unique<Silent>(settings(nullptr))}.run();
  EXPECT_DOUBLE_EQ(report.applications.at(1).cores_wait_s, 65);
}

TEST_F(CoresBeforeAStart, AreAwaitedUntilTheSimulationEnds) {
  Scenario asked = scenario(60);
  asked.until_s = 42.2;
  const SimulationReport report = Simulation{asked, std::make_unique<Controller>(settings(&policy::fair))}.run();
  const ApplicationResult& second = report.applications.at(1);
  EXPECT_NEAR(second.cores_wait_s, 0.1, 1e-9);
  EXPECT_DOUBLE_EQ(second.start_s, second.end_s);
}

TEST(SimulationTest, OneAloneTakesWhatItsCurveAndTheTargetSay) {
  const SimulationReport report = run(scenario_of({program("a", 0.5, 2000, 7)}));
  const ApplicationResult& a = report.applications.at(0);
  EXPECT_DOUBLE_EQ(a.total_s(), 7 * (5 + 2));
  EXPECT_DOUBLE_EQ(a.alone_s, a.total_s());
  EXPECT_DOUBLE_EQ(a.compute_s, 35);
  EXPECT_DOUBLE_EQ(a.io_s, 14);
  EXPECT_EQ(a.phases, 7);
  EXPECT_EQ(a.iterations, 70);
  EXPECT_DOUBLE_EQ(report.flops, 70e9 / 49);
  EXPECT_DOUBLE_EQ(report.targets.at(0).busy_s, 14);
}

// The expected values come from SimGrid 3.32: tests/simgrid/shared_target.cpp.
TEST(SimulationTest, AgreesWithSimGrid) {
  struct Case {
    double start, compute, bytes, most;
    std::int64_t phases;
    double end, io;
  };
  const std::vector<Case> cases{{0, 7, 3000, 1e9, 12, 164.546294, 80.546294},
                                {1, 5.5, 900, 150, 14, 162.000000, 84.000000},
                                {2.5, 9, 5000, 700, 8, 166.874014, 92.374014},
                                {4, 3, 250, 90, 20, 119.555556, 55.555556},
                                {0.5, 11, 8000, 450, 6, 187.115529, 120.615529}};
  std::vector<ApplicationSpec> programs;
  for (const Case& c : cases) {
    programs.push_back(program(std::to_string(programs.size()), c.compute / 10, c.bytes, c.phases));
    programs.back().start_s = c.start;
    programs.back().io_bandwidth = c.most;
  }
  const SimulationReport report = run(scenario_of(programs));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_THAT(report.applications[i].end_s, DoubleNear(cases[i].end, 1e-5)) << "program " << i;
    EXPECT_THAT(report.applications[i].io_s, DoubleNear(cases[i].io, 1e-5)) << "program " << i;
  }
}

// The two always want the disk at the same time.
TEST(SimulationTest, APolicyMayHoldForOneApplicationOrTarget) {
  Scenario scenario = scenario_of({program("a", 0.5, 2000, 7), program("b", 0.5, 2000, 7)});
  const auto waits_s = [&](std::size_t i) { return run(scenario, &policy::fcfs).applications.at(i).wait_s; };
  EXPECT_GT(waits_s(0) + waits_s(1), 0);
  scenario.applications[0].policy = scenario.applications[1].policy = "none";
  EXPECT_EQ(waits_s(0) + waits_s(1), 0);
  scenario.targets[0].policy = "fcfs";
  EXPECT_GT(waits_s(0) + waits_s(1), 0) << "applications cannot bypass what is set for the target";
  scenario.targets[0].policy_allows = true;
  EXPECT_EQ(waits_s(0) + waits_s(1), 0);
}

std::vector<ApplicationSpec> crowd(std::size_t count, double jitter) {
  std::vector<ApplicationSpec> programs;
  for (std::size_t i = 0; i < count; ++i) {
    const auto k = static_cast<double>(i);
    programs.push_back(program("p" + std::to_string(i), 0.4 + 0.03 * k, 500 + 300 * k, 20));
    programs.back().jitter = programs.back().io_jitter = jitter;
    programs.back().malleable = i % 2 == 0;
  }
  return programs;
}

TEST(SimulationTest, ApplicationsOnDisjointPartsDoNotWait) {
  Scenario scenario = scenario_of({program("a", 0.5, 2000, 7), program("b", 0.5, 2000, 7)});
  scenario.targets[0].parts = {"ost0", "ost1", "ost2", "ost3"};
  const auto use = [&](std::size_t i, std::vector<std::size_t> numbers) {
    ApplicationSpec& spec = scenario.applications[i];
    spec.part_numbers = std::move(numbers);
    spec.parts.clear();
    for (const std::size_t number : spec.part_numbers) spec.parts.push_back("ost" + std::to_string(number));
  };
  use(0, {0, 1});
  use(1, {2, 3});
  const SimulationReport apart = run(scenario, &policy::fcfs);
  for (const ApplicationResult& one : apart.applications) {
    EXPECT_EQ(one.wait_s, 0);
    EXPECT_NEAR(one.total_s(), 7 * (5 + 4), 1e-6) << "half of the parts have half of the bandwidth";
    EXPECT_NEAR(one.alone_s, one.total_s(), 1e-6);
  }
  EXPECT_NEAR(apart.targets.at(0).overlap_s, 28, 1e-6);
  use(1, {1, 2});
  const SimulationReport common = run(scenario, &policy::fcfs);
  EXPECT_NEAR(common.applications.at(1).wait_s, 4, 1e-6) << "then they are out of step";
  EXPECT_NEAR(common.targets.at(0).overlap_s, 0, 1e-6);
}

TEST(SimulationTest, TheSameScenarioGivesTheSameReport) {
  Scenario scenario = scenario_of(crowd(8, 0.3));
  for (const policy::Policy* access : {static_cast<const policy::Policy*>(nullptr), &policy::fcfs}) {
    const std::string first = to_json(run(scenario, access));
    EXPECT_EQ(to_json(run(scenario, access)), first);
    ++scenario.seed;
    EXPECT_NE(to_json(run(scenario, access)), first);
    --scenario.seed;
  }
}

// Neither the other applications nor the policy change what an application does; they only change when.
TEST(SimulationTest, WorkIsConserved) {
  const Scenario scenario = scenario_of(crowd(8, 0.3));
  const SimulationReport uncoordinated = run(scenario);
  const SimulationReport blocking = run(scenario, &policy::fcfs);
  double busy = 0;
  for (std::size_t i = 0; i < scenario.applications.size(); ++i) {
    const ApplicationResult& a = uncoordinated.applications[i];
    const ApplicationResult& b = blocking.applications[i];
    const Scenario alone = scenario_of({scenario.applications[i]});
    const ApplicationResult c = run(alone).applications[0];
    EXPECT_DOUBLE_EQ(a.bytes_written, b.bytes_written);
    EXPECT_NEAR(a.compute_s, b.compute_s, 1e-6);
    EXPECT_NEAR(a.alone_s, c.total_s(), 1e-6);
    EXPECT_NEAR(a.io_alone_s, c.io_s, 1e-6);
    EXPECT_NEAR(b.io_s, b.io_alone_s, 1e-6) << "one at a time";
    EXPECT_NEAR(b.total_s(), b.compute_s + b.io_s + b.wait_s, 1e-6);
    EXPECT_NEAR(a.total_s(), a.compute_s + a.io_s, 1e-6);
    EXPECT_GE(a.io_s, a.io_alone_s - 1e-6);
    busy += a.io_alone_s;
  }
  EXPECT_NEAR(uncoordinated.targets[0].busy_s, busy, 1e-5);
  EXPECT_NEAR(blocking.targets[0].busy_s, busy, 1e-5);
  EXPECT_EQ(blocking.targets[0].overlap_s, 0);
}

TEST(SimulationTest, IsCutOffWhereItIsTold) {
  Scenario scenario = scenario_of({program("a", 0.5, 2000, 7)});
  scenario.until_s = 13;  // in the second phase
  const ApplicationResult a = run(scenario).applications.at(0);
  EXPECT_DOUBLE_EQ(a.end_s, 13);
  EXPECT_EQ(a.phases, 1);
  EXPECT_EQ(a.iterations, 20);
  EXPECT_DOUBLE_EQ(a.io_s, 3);
}

TEST(SimulationTest, WhoWaitsTooLongGoesOnUncoordinated) {
  Scenario scenario = scenario_of({program("a", 0.1, 20000, 1), program("b", 0.1, 1000, 1)});
  scenario.max_wait_s = 4;
  const ApplicationResult b = run(scenario, &policy::fcfs).applications.at(1);
  EXPECT_DOUBLE_EQ(b.wait_s, 4);
  EXPECT_DOUBLE_EQ(b.io_s, 2);
}

TEST(SimulationTest, TroublesComeAsOftenAsTheyAreTold) {
  auto programs = crowd(40, 0);
  for (auto& spec : programs) spec.troubles = {0.1, 0.25, 0.01, 0, 0};
  const SimulationReport report = run(scenario_of(programs), &policy::fcfs);
  std::int64_t phases = 0;
  std::int64_t dead = 0;
  for (const auto& a : report.applications) {
    phases += a.phases;
    dead += a.iterations < 200;
  }
  EXPECT_GT(dead, 1);
  EXPECT_LT(dead, 20);
  EXPECT_GT(phases, 400);
  EXPECT_LT(phases, 650);
}

// The trace has the daemon's format: its events, given to another coordinator, lead to the same commands in order.
TEST(SimulationTest, ItsTraceCanBeReplayed) {
  const Scenario scenario = scenario_of(crowd(8, 0.3));
  const coordinator::CoordinatorSettings settings = settings_of(policy::fcfs);
  const std::string path = ::testing::TempDir() + "hocket-simulated-" + std::to_string(getpid()) + ".jsonl";
  auto controller = std::make_unique<Controller>(settings);
  ASSERT_TRUE(controller->open_trace(path, {}));
  Simulation{scenario, std::move(controller)}.run();

  coordinator::Coordinator coordinator{settings};
  auto reader = trace::Reader::open(path);
  ASSERT_TRUE(reader);
  std::vector<coordinator::Command> due;
  std::size_t commands = 0;
  while (true) {
    const auto record = reader.value().next();
    ASSERT_TRUE(record) << record.error().text;
    if (!record.value()) break;
    const event::Event& event = record.value()->event;
    if (record.value()->direction == trace::Direction::in) {
      ASSERT_TRUE(due.empty()) << "line " << reader.value().line();
      due = coordinator.handle(event);
      continue;
    }
    ASSERT_FALSE(due.empty()) << "line " << reader.value().line();
    std::string expected;
    std::string got;
    trace::append_line(trace::Direction::out, event, expected);
    trace::append_line(trace::Direction::out, {event.time, event.origin, due.front().body}, got);
    EXPECT_EQ(got, expected);
    EXPECT_EQ(due.front().to, event.origin.member);
    due.erase(due.begin());
    ++commands;
  }
  EXPECT_GT(commands, 300U);
}

// ---- interruption --------------------------------------------------------------------------------------------------

// Gives the commands of a policy that grants the last arrival first and preempts the holder for it.
class LastComeFirst : public Controller {
 public:
  struct Heard {
    Time time;
    MemberId from;
    event::Body body;
  };
  LastComeFirst(const coordinator::CoordinatorSettings& settings, std::vector<Heard>& heard)
      : Controller(settings), heard_(heard) {}

  const std::vector<coordinator::Command>& send(Time now, const MemberIdentity& from, event::Body body) override {
    commands_.clear();
    if (std::holds_alternative<event::Hello>(body)) {
      say(from.id, event::Welcome{AppId{from.id.value}, {}, {}, std::chrono::seconds{9}});
    } else if (const auto* start = std::get_if<event::StartIo>(&body)) {
      const auto before = stack_.empty() ? std::nullopt : std::optional{stack_.back()};
      stack_.emplace_back(from.id, start->request);
      if (before) {
        say(before->first, event::PauseIo{before->second, "b", "disk"});
        say(before->first, event::PauseIo{before->second, "b", "disk"});  // received once
      } else {
        grant(stack_.back());
      }
    } else if (std::holds_alternative<event::PausedIo>(body)) {
      grant(stack_.back());
    } else if (std::holds_alternative<event::FinishIo>(body)) {
      const bool was_next = stack_.back().first != from.id;
      std::erase_if(stack_, [&](const auto& one) { return one.first == from.id; });
      if (!stack_.empty()) grant(stack_.back());
      EXPECT_TRUE(!was_next || !stack_.empty());
    }
    heard_.push_back({now, from.id, std::move(body)});
    return commands_;
  }

 private:
  using One = std::pair<MemberId, RequestId>;
  void say(MemberId to, event::Body body) { commands_.push_back({to, std::move(body)}); }
  void grant(const One& one) { say(one.first, event::GrantIo{one.second, {}, "disk"}); }

  std::vector<One> stack_;
  std::vector<coordinator::Command> commands_;
  std::vector<Heard>& heard_;
};

// A writes 4000 bytes in phases from 1 s on, B 1000 bytes from 1 s + dt on; the target takes 1000 bytes a second.
class Interruptions : public ::testing::Test {
 protected:
  SimulationReport run(double dt) {
    ApplicationSpec b = program("b", 0.1, 1000, 1);
    b.start_s = dt;
    scenario_ = scenario_of({a_, b});
    scenario_.max_wait_s = max_wait_s_;
    return Simulation{scenario_, std::make_unique<LastComeFirst>(settings_of(policy::fcfs), heard_)}.run();
  }
  template <class Event>
  std::vector<std::pair<double, Event>> heard(std::uint64_t from) const {
    std::vector<std::pair<double, Event>> found;
    for (const auto& one : heard_) {
      const auto* body = std::get_if<Event>(&one.body);
      if (body && one.from.value == from) found.emplace_back(to_s(one.time - Simulation::start), *body);
    }
    return found;
  }

  ApplicationSpec a_ = program("a", 0.1, 4000, 1);
  double max_wait_s_ = 600;
  Scenario scenario_;
  std::vector<LastComeFirst::Heard> heard_;
};

TEST_F(Interruptions, WhoIsToldToPauseStopsAndGoesOnWithTheRest) {
  const SimulationReport report = run(1.5);
  const ApplicationResult& a = report.applications[0];
  const ApplicationResult& b = report.applications[1];
  EXPECT_DOUBLE_EQ(b.wait_s, 0);
  EXPECT_DOUBLE_EQ(b.io_s, 1);
  EXPECT_DOUBLE_EQ(a.io_s, 4);
  EXPECT_DOUBLE_EQ(a.paused_s, 1);
  EXPECT_DOUBLE_EQ(a.wait_s, 1);
  EXPECT_EQ(a.interruptions, 1);
  EXPECT_DOUBLE_EQ(a.end_s, 6);
  EXPECT_DOUBLE_EQ(a.bytes_written, 4000);
  EXPECT_DOUBLE_EQ(report.targets[0].bytes, 5000);
  EXPECT_EQ(report.targets[0].busy_s, 5);
  EXPECT_EQ(report.targets[0].overlap_s, 0);

  const auto paused = heard<event::PausedIo>(1);
  ASSERT_EQ(paused.size(), 1U);
  EXPECT_DOUBLE_EQ(paused[0].first, 2.5);
  EXPECT_EQ(paused[0].second.bytes, 1500);
  EXPECT_EQ(heard<event::StartIo>(1).at(0).second.phase_bytes, 4000);
  const auto finished = heard<event::FinishIo>(1);
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].second.io, from_s(4));
  const auto phase = heard<event::IoPhase>(1).at(0).second;
  EXPECT_EQ(phase.io, from_s(4));
  EXPECT_EQ(phase.wait, from_s(1));
  EXPECT_EQ(phase.end - phase.start, from_s(5));
}

TEST_F(Interruptions, WhatHasEndedWhenItIsToldToPauseOnlyFinishes) {
  const SimulationReport report = run(4);
  EXPECT_EQ(report.applications[0].interruptions, 0);
  EXPECT_TRUE(heard<event::PausedIo>(1).empty());
  EXPECT_DOUBLE_EQ(report.applications[1].wait_s, 0);
}

struct Stop {
  Grain grain;
  std::int64_t files;
  double round_bytes;
  double dt;
  double b_waits;
  std::int64_t round;
};

class Grains : public Interruptions, public ::testing::WithParamInterface<Stop> {};

TEST_P(Grains, APauseComesWhereTheScenarioAllowsIt) {
  const Stop& stop = GetParam();
  a_.grain = stop.grain;
  a_.files = stop.files;
  a_.round_bytes = stop.round_bytes;
  const SimulationReport report = run(stop.dt);
  EXPECT_NEAR(report.applications[1].wait_s, stop.b_waits, 2e-9);
  EXPECT_NEAR(report.applications[0].io_s, 4, 2e-9);
  EXPECT_NEAR(report.applications[0].end_s, stop.b_waits < 4 - stop.dt ? 6 : 5, 2e-9);
  EXPECT_DOUBLE_EQ(report.targets[0].bytes, 5000);
  const auto paused = heard<event::PausedIo>(1);
  ASSERT_EQ(paused.size(), stop.b_waits < 4 - stop.dt ? 1U : 0U);
  for (const auto& [time, event] : paused) {
    EXPECT_NEAR(time, 1 + stop.dt + stop.b_waits, 2e-9);
    EXPECT_EQ(event.round, stop.round);
  }
  EXPECT_EQ(heard<event::FinishIo>(1).at(0).second.unstopped, stop.grain == Grain::operation);
}

INSTANTIATE_TEST_SUITE_P(Table, Grains,
                         ::testing::Values(Stop{Grain::operation, 4, 100, 1.5, 2.5, -1},  //
                                           Stop{Grain::file, 4, 100, 1.5, 0.5, -1},       //
                                           Stop{Grain::file, 4, 100, 2, 0, -1},  // the file is complete there anyway
                                           Stop{Grain::file, 4, 100, 3.25, 0.75, -1},    // the last file
                                           Stop{Grain::file, 1, 100, 1.5, 2.5, -1},      //
                                           Stop{Grain::round, 4, 0, 1.53, 0, -1},        //
                                           Stop{Grain::round, 4, 100, 1.53, 0.07, 5},    //
                                           Stop{Grain::round, 4, 300, 1.53, 0.07, 1},    //
                                           Stop{Grain::round, 4, 300, 1.93, 0.07, -1},   // the file's short last round
                                           Stop{Grain::round, 1, 300, 1.53, 0.27, 5},    //
                                           Stop{Grain::round, 3, 1e9, 1.5, 7.0 / 6, -1}  // a round is within one file
                                           ));

TEST_F(Interruptions, WhoIsPausedTooLongGoesOnUncoordinated) {
  max_wait_s_ = 0.25;
  const SimulationReport report = run(1.5);
  const ApplicationResult& a = report.applications[0];
  EXPECT_DOUBLE_EQ(a.paused_s, 0.25);
  EXPECT_EQ(heard<event::FinishIo>(1).size(), 1U);  // of the withdrawn request
  // Both transfer from 2.75 s on, and 750 bytes of B are left: B ends at 4.25 s.
  EXPECT_DOUBLE_EQ(report.applications[1].end_s, 4.25);
  EXPECT_DOUBLE_EQ(a.end_s, 6);
}

TEST_F(Interruptions, AreCutOffInTheMiddle) {
  a_.iterations = 20;
  ApplicationSpec b = program("b", 0.1, 1000, 1);
  b.start_s = 1.5;
  scenario_ = scenario_of({a_, b});
  scenario_.until_s = 3;
  const SimulationReport report =
      Simulation{scenario_, std::make_unique<LastComeFirst>(settings_of(policy::fcfs), heard_)}.run();
  EXPECT_DOUBLE_EQ(report.applications[0].io_s, 1.5);
  EXPECT_DOUBLE_EQ(report.applications[0].paused_s, 0.5);
  EXPECT_DOUBLE_EQ(report.applications[0].wait_s, 0.5);
  EXPECT_DOUBLE_EQ(report.targets[0].bytes, 2500);
}

TEST_F(Interruptions, TellsHowFarItIs) {
  a_.io_bytes = 8000;
  run(100);
  const auto renewed = heard<event::RenewIo>(1);
  ASSERT_EQ(renewed.size(), 2U);
  EXPECT_EQ(renewed[0].second.bytes, 3000);
  EXPECT_EQ(renewed[1].second.bytes, 6000);
}

// ---- CALCioM, section IV-D -----------------------------------------------------------------------------------------

// Two applications of N processes with one phase each, A's first: f = N (I/O time of A + that of B), waits included.
double wasted(const SimulationReport& report) {
  double cost = 0;
  for (const ApplicationResult& a : report.applications) {
    cost += static_cast<double>(a.processes_first) * (a.io_s + a.wait_s);
  }
  return cost;
}

class TwoApplications : public ::testing::TestWithParam<std::pair<double, double>> {
 protected:
  static constexpr double n = 2048;
  double a_alone_ = GetParam().first;
  double b_alone_ = GetParam().second;

  double wasted_at(double dt, const policy::Policy& access) {
    ApplicationSpec a = program("a", 0.1, 1000 * a_alone_, 1);
    ApplicationSpec b = program("b", 0.1, 1000 * b_alone_, 1);
    b.start_s = dt;
    for (ApplicationSpec* spec : {&a, &b}) {
      spec->processes = static_cast<std::int64_t>(n);
      spec->curve = {};
      EXPECT_TRUE(spec->curve.add({spec->processes, 0.1}));
    }
    const SimulationReport report = run(scenario_of({a, b}), &access);
    interrupted_ = report.applications[0].interruptions > 0;
    return wasted(report);
  }
  double by_fcfs(double dt) const { return n * (2 * a_alone_ + b_alone_ - dt); }
  double by_interruption() const { return n * (a_alone_ + 2 * b_alone_); }

  bool interrupted_ = false;
};

TEST_P(TwoApplications, TheFormulasHoldAndDynamicTakesTheLesser) {
  constexpr double ns = n * 4e-9;  // one rounding for each time
  const double boundary = a_alone_ - b_alone_;
  const int steps = static_cast<int>(std::lround(a_alone_ * 8));
  for (int step = 1; step < steps; ++step) {
    const double dt = step / 8.0;
    EXPECT_NEAR(wasted_at(dt, policy::fcfs), by_fcfs(dt), ns) << "dt = " << dt;
    EXPECT_FALSE(interrupted_);
    EXPECT_NEAR(wasted_at(dt, policy::interrupt), by_interruption(), ns) << "dt = " << dt;
    EXPECT_TRUE(interrupted_);
    EXPECT_NEAR(wasted_at(dt, policy::dynamic), std::min(by_fcfs(dt), by_interruption()), ns) << "dt = " << dt;
    if (dt != boundary) {
      EXPECT_EQ(interrupted_, dt < boundary) << "dt = " << dt;
    }
  }
}

TEST_P(TwoApplications, WhoComesAfterTheOthersEndCostsNothing) {
  for (const policy::Policy* access : {&policy::fcfs, &policy::interrupt, &policy::dynamic, &policy::interfere}) {
    EXPECT_NEAR(wasted_at(a_alone_ + 0.5, *access), n * (a_alone_ + b_alone_), n * 4e-9) << access->name;
    EXPECT_FALSE(interrupted_);
  }
}

// A does four times as much as B, as in Fig. 10; as much; much less; more.
INSTANTIATE_TEST_SUITE_P(Sizes, TwoApplications,
                         ::testing::Values(std::pair{8.0, 2.0}, std::pair{5.0, 5.0}, std::pair{31.0, 1.0},
                                           std::pair{3.0, 7.0}));

// ---- sharing -------------------------------------------------------------------------------------------------------

TEST(SimulationTest, ProportionalSharingGivesTheSmallOneALittle) {
  ApplicationSpec large = program("large", 0.1, 31000, 1);
  ApplicationSpec small = program("small", 0.1, 1000, 1);
  large.processes = 744;
  small.processes = 24;
  for (ApplicationSpec* spec : {&large, &small}) {
    spec->curve = {};
    ASSERT_TRUE(spec->curve.add({spec->processes, 0.1}));
  }
  Scenario scenario = scenario_of({large, small});
  scenario.targets[0].sharing = BandwidthSharing::proportional;
  SimulationReport report = run(scenario);
  EXPECT_DOUBLE_EQ(report.applications[0].io_s, 32);
  EXPECT_DOUBLE_EQ(report.applications[1].io_s, 32);
  scenario.applications[1].start_s = 10;
  report = run(scenario);
  EXPECT_NEAR(report.applications[0].io_s, 10 + 21 * 32.0 / 31, 2e-9);
  scenario.targets[0].sharing = BandwidthSharing::fair;
  EXPECT_DOUBLE_EQ(run(scenario).applications[1].io_s, 2);
}

// The Δ-graph's model relies on this: each phase starts when requested, dt after the other, and takes the expected
// time.
TEST(SimulationTest, PhasesStartWhenTheyAreToldTo) {
  for (int step = 0; step <= 40; ++step) {
    const double dt = 0.1 * step;
    ApplicationSpec a = program("a", 0.1, 3000, 1);
    ApplicationSpec b = a;
    b.name = "b";
    b.io_bytes = 1000;
    b.start_s = dt;
    const SimulationReport together = run(scenario_of({a, b}));
    const SimulationReport blocking = run(scenario_of({a, b}), &policy::fcfs);
    EXPECT_NEAR(blocking.applications[0].io_s, 3, 1e-9);
    EXPECT_NEAR(blocking.applications[1].wait_s, std::max(0.0, 3 - dt), 2e-9) << dt;
    EXPECT_NEAR(blocking.applications[1].end_s, 1 + std::max(dt, 3.0) + 1, 2e-9) << dt;
    const double b_takes = dt <= 2 ? 2 : std::max(1.0, (3 - dt) + 1);
    EXPECT_NEAR(together.applications[1].io_s, b_takes, 2e-9) << dt;
    EXPECT_NEAR(together.applications[0].io_s, dt <= 2 ? 4 : std::max(3.0, dt + 2 * (3 - dt)), 2e-9) << dt;
  }
}

// ---- several phases in a period ------------------------------------------------------------------------------------

PhaseSpec phase_of(double bytes, double after = 1) {
  PhaseSpec phase;
  phase.bytes = bytes;
  phase.after = after;
  phase.target = "disk";
  return phase;
}

class Phases : public Interruptions {
 protected:
  static ApplicationSpec cycle(const std::string& name, std::vector<PhaseSpec> phases, std::int64_t periods = 1) {
    ApplicationSpec spec = program(name, 0.1, 0, periods);
    spec.phases = std::move(phases);
    return spec;
  }
  static SimulationReport run(const Scenario& scenario, const policy::Policy* access = nullptr) {
    return sim::run(scenario, access);
  }
  SimulationReport listen(std::vector<ApplicationSpec> applications) {
    scenario_ = scenario_of(std::move(applications));
    return Simulation{scenario_, std::make_unique<LastComeFirst>(settings_of(policy::fcfs), heard_)}.run();
  }
};

TEST_F(Phases, OnePhaseAtTheEndOfThePeriodIsWhatIoBytesIs) {
  std::vector<ApplicationSpec> before = crowd(8, 0.3);
  std::vector<ApplicationSpec> after = before;
  for (ApplicationSpec& spec : after) spec.phases = {phase_of(std::exchange(spec.io_bytes, 0))};
  for (ApplicationSpec& spec : before) spec.troubles.phase_skip = 0.1;
  for (ApplicationSpec& spec : after) spec.troubles.phase_skip = 0.1;
  for (const policy::Policy* access : {static_cast<const policy::Policy*>(nullptr), &policy::fcfs, &policy::dynamic}) {
    EXPECT_EQ(to_json(run(scenario_of(after), access)), to_json(run(scenario_of(before), access)));
  }
}

TEST_F(Phases, ComeWhereThePeriodSaysEachWithItsOwnTargetAndOperations) {
  PhaseSpec write = phase_of(2000, 0.3);
  write.operations = 4;
  write.operation_gap_s = 0.25;
  PhaseSpec read = phase_of(600, 0.3);
  read.gap_s = 0.5;
  read.reads = true;
  read.target = "other";
  read.target_index = 1;
  ApplicationSpec a = cycle("a", {write, read, phase_of(1000)}, 2);
  scenario_ = scenario_of({a});
  scenario_.targets.push_back({"other", 300, 1, BandwidthSharing::fair});
  const SimulationReport report =
      Simulation{scenario_, std::make_unique<LastComeFirst>(settings_of(policy::fcfs), heard_)}.run();
  const ApplicationResult& result = report.applications.at(0);
  const double period_s = 1 + (2 + 3 * 0.25) + (0.5 + 2) + 1;
  EXPECT_DOUBLE_EQ(result.total_s(), 2 * period_s);
  EXPECT_DOUBLE_EQ(result.alone_s, result.total_s());
  EXPECT_DOUBLE_EQ(result.io_s, 2 * 5);
  EXPECT_DOUBLE_EQ(result.compute_s, 2 * (1 + 0.75 + 0.5));
  EXPECT_DOUBLE_EQ(result.bytes_written, 6000);
  EXPECT_DOUBLE_EQ(result.bytes_read, 1200);
  EXPECT_EQ(result.phases, 6);
  EXPECT_EQ(result.operations, 12);
  EXPECT_DOUBLE_EQ(report.targets.at(0).bytes, 6000);
  EXPECT_DOUBLE_EQ(report.targets.at(1).bytes, 1200);

  const auto asked = heard<event::StartIo>(1);
  ASSERT_EQ(asked.size(), 12U);
  const std::vector<double> first{0.3, 1.05, 1.8, 2.55, 3.55, 6.25};
  const std::vector<std::int64_t> announced{2000, 1500, 1000, 500, 600, 1000};
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_NEAR(asked[k].first, first[k], 1e-8);
    EXPECT_NEAR(asked[k + 6].first, first[k] + period_s, 1e-8);
    EXPECT_EQ(asked[k].second.bytes, k < 4 ? 500 : announced[k]);
    EXPECT_EQ(asked[k].second.phase_bytes, announced[k]);
    EXPECT_EQ(asked[k].second.files, std::vector<std::int64_t>({4, 3, 2, 1, 1, 1})[k]);
    EXPECT_EQ(asked[k].second.target, k == 4 ? "other" : "disk");
    EXPECT_EQ(asked[k].second.operation, k == 4 ? "MPI_File_read_all" : "MPI_File_write_all");
  }
  const auto phases = heard<event::IoPhase>(1);
  ASSERT_EQ(phases.size(), 6U);
  EXPECT_EQ(phases[0].second.operations, 4);
  EXPECT_NEAR(to_s(phases[0].second.end - phases[0].second.start), 2.75, 1e-8);
  EXPECT_NEAR(to_s(phases[0].second.io), 2, 1e-8);
  EXPECT_NEAR(to_s(phases[0].second.cpu), 0.3 + 0.75, 1e-8);
  EXPECT_NEAR(to_s(phases[1].second.cpu), 0.5, 1e-8);
  EXPECT_EQ(phases[1].second.bytes_read, 150);
  EXPECT_NEAR(to_s(phases[3].second.cpu), 0.3 + 0.75, 1e-8);
  EXPECT_EQ(phases[5].second.index, 5);
}

// libhocket detects the end of a phase by the gap alone: phases that are closer belong together.
TEST_F(Phases, AreToldAsTheMonitorTellsThem) {
  PhaseSpec near = phase_of(1000);
  near.gap_s = 0.05;
  PhaseSpec far = phase_of(500);
  far.gap_s = 0.3;
  ApplicationSpec a = cycle("a", {phase_of(1000), near, far}, 2);
  a.phase_gap_s = 0.1;
  listen({a});
  for (const auto& finished : heard<event::FinishIo>(1)) EXPECT_FALSE(finished.second.phase_over);
  const auto phases = heard<event::IoPhase>(1);
  ASSERT_EQ(phases.size(), 4U);
  EXPECT_NEAR(phases[0].first, 1 + 2.05 + 0.1, 1e-8);
  EXPECT_EQ(phases[0].second.operations, 2);
  EXPECT_NEAR(to_s(phases[0].second.end - phases[0].second.start), 2.05, 1e-8);
  EXPECT_NEAR(to_s(phases[0].second.cpu), 1.05, 1e-8);
  EXPECT_NEAR(to_s(phases[1].second.cpu), 0.3, 1e-8);
  EXPECT_NEAR(to_s(phases[2].second.cpu), 1.05, 1e-8);
  EXPECT_NEAR(phases[3].first, 2 * (1 + 1 + 0.05 + 1 + 0.3 + 0.5), 1e-8) << "at the end of the program";
}

TEST_F(Phases, ThePageCacheServesWithoutTheTarget) {
  PhaseSpec read = phase_of(1000);
  read.reads = read.cached = true;
  ApplicationSpec a = cycle("a", {read});
  a.cache_bytes_per_s = 2000;
  const ApplicationSpec b = program("b", 0.1, 3000, 1);
  const SimulationReport report = run(scenario_of({a, b}));
  EXPECT_DOUBLE_EQ(report.applications[0].io_s, 0.5);
  EXPECT_DOUBLE_EQ(report.applications[1].io_s, 3);
  EXPECT_DOUBLE_EQ(report.targets.at(0).bytes, 3000);
  EXPECT_EQ(report.targets.at(0).overlap_s, 0);
  // The coordinator gets no message about it.
  EXPECT_DOUBLE_EQ(run(scenario_of({b, a}), &policy::fcfs).applications[1].wait_s, 3);
}

TEST_F(Phases, AnnounceWhatTheScenarioSays) {
  PhaseSpec four = phase_of(4000);
  four.operations = 4;
  ApplicationSpec a = cycle("a", {four}, 2);
  a.announces = Announces::nothing;
  listen({a});
  for (const auto& asked : heard<event::StartIo>(1)) {
    EXPECT_EQ(asked.second.phase_bytes, 0);
    EXPECT_EQ(asked.second.bytes, 1000);
  }
  std::set<std::int64_t> drawn;
  for (int k = 0; k < 40; ++k) {
    heard_.clear();
    a.name = "a" + std::to_string(k);
    a.announces = Announces::wrong;
    listen({a});
    const auto asked = heard<event::StartIo>(1);
    const std::int64_t first = asked.at(0).second.phase_bytes;
    EXPECT_GE(first, 1200);
    EXPECT_LE(first, 12000);
    for (std::size_t n = 0; n < 8; ++n) {
      const std::int64_t left = first - 1000 * static_cast<std::int64_t>(n % 4);
      EXPECT_EQ(asked.at(n).second.phase_bytes, std::max<std::int64_t>(0, left));
      EXPECT_EQ(asked.at(n).second.bytes, 1000);
    }
    drawn.insert(first);
  }
  EXPECT_GT(drawn.size(), 30U);
  EXPECT_LT(*drawn.begin(), 2800);
  EXPECT_GT(*drawn.rbegin(), 6000);
}

// A program that cannot stop inside an operation is preempted between two of them, and only there.
TEST_F(Phases, WhatCannotStopInAnOperationStopsBetweenTwo) {
  PhaseSpec four = phase_of(4000);
  four.operations = 4;
  ApplicationSpec a = cycle("a", {four});
  a.grain = Grain::operation;
  ApplicationSpec b = program("b", 0.1, 1000, 1);
  b.start_s = 1.5;
  scenario_ = scenario_of({a, b});
  const SimulationReport report = run(scenario_, &policy::interrupt);
  EXPECT_NEAR(report.applications[1].wait_s, 0.5, 2e-9);
  EXPECT_NEAR(report.applications[0].paused_s, 1, 2e-9);
  EXPECT_NEAR(report.applications[0].wait_s, 1, 2e-9);
  EXPECT_EQ(report.applications[0].interruptions, 1);
  EXPECT_NEAR(report.applications[0].io_s, 4, 1e-8);
}

TEST_F(Phases, FewWritersGetLittleOfAProportionalTarget) {
  ApplicationSpec a = program("a", 0.1, 1000, 1);
  ApplicationSpec b = program("b", 0.1, 1000, 1);
  a.writers = 1;
  scenario_ = scenario_of({a, b});
  scenario_.targets[0].sharing = BandwidthSharing::proportional;
  const SimulationReport report = run(scenario_);
  EXPECT_NEAR(report.applications[1].io_s, 1.25, 1e-8);
  EXPECT_NEAR(report.applications[0].io_s, 2, 1e-8);
}

TEST_F(Phases, JitterOfTheGapsIsTheSameUnderEachPolicy) {
  PhaseSpec ten = phase_of(1000);
  ten.operations = 10;
  ten.operation_gap_s = 0.01;
  ApplicationSpec a = cycle("a", {ten}, 20);
  a.gap_jitter = 0.5;
  ApplicationSpec b = a;
  b.name = "b";
  const SimulationReport together = run(scenario_of({a, b}));
  const SimulationReport blocking = run(scenario_of({a, b}), &policy::fcfs);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_NEAR(together.applications[k].compute_s, blocking.applications[k].compute_s, 1e-6);
    EXPECT_NEAR(together.applications[k].alone_s, blocking.applications[k].alone_s, 1e-6);
    EXPECT_NE(together.applications[k].compute_s, 20 * (1 + 9 * 0.01));
  }
}

TEST_F(Phases, AreCutOffBetweenTwoOperations) {
  PhaseSpec two = phase_of(2000);
  two.operations = 2;
  two.operation_gap_s = 4;
  scenario_ = scenario_of({cycle("a", {two})});
  scenario_.until_s = 3;
  const ApplicationResult a = run(scenario_, &policy::fcfs).applications.at(0);
  EXPECT_DOUBLE_EQ(a.compute_s, 2);
  EXPECT_DOUBLE_EQ(a.io_s, 1);
  EXPECT_DOUBLE_EQ(a.end_s, 3);
}

// ---- control points ------------------------------------------------------------------------------------------------

event::Reconfigure to(std::int64_t processes, std::int64_t at_iteration) {
  event::Reconfigure command;
  command.request = RequestId{1};
  command.processes = processes;
  command.at_iteration = at_iteration;
  return command;
}

class ControlPoints : public ::testing::Test {
 protected:
  ControlPoints() { spec_.control_every = 3; }
  static Time at(double s) { return Simulation::start + from_s(s); }

  ApplicationSpec spec_ = program("a", 1, 1000, 2);
  std::vector<TargetSpec> targets_{{"disk", 1000, 1, BandwidthSharing::fair}};
  SimulatedApplication application_{spec_, targets_, 1};
};

TEST_F(ControlPoints, AResizeComesAtTheFirstOneWithSoManyIterationsDone) {
  application_.begin_period();
  application_.compute(at(0));
  EXPECT_EQ(application_.next_stop(), 10);
  application_.want(at(3.5), to(8, 0));
  EXPECT_EQ(application_.next_stop(), 6);
  application_.want(at(3.5), to(8, 7));
  EXPECT_EQ(application_.next_stop(), 9);
  EXPECT_EQ(application_.time_of(9), at(9));
  application_.compute_until(at(9), 9);
  ASSERT_TRUE(application_.is_wanted_now());
  EXPECT_EQ(application_.refusal(), "");
  const SimulatedResize resize = application_.take_wanted(at(9));
  EXPECT_EQ(application_.cost(resize, {1, 0.25, 0}), from_s(2));
  application_.resized(at(11), resize);
  application_.compute(at(11));
  EXPECT_EQ(application_.processes(), 8);
  EXPECT_EQ(application_.time_of(10), at(11.5));
}

TEST_F(ControlPoints, OneThatIsPastIsRefusedAsLibhocketDoes) {
  application_.begin_period();
  application_.compute(at(0));
  application_.want(at(4), to(8, 5));  // first seen at iteration 6
  application_.compute_until(at(6), 6);
  ASSERT_TRUE(application_.is_wanted_now());
  EXPECT_EQ(application_.refusal(), "iteration 5 is past, the application has done 6");
}

TEST_F(ControlPoints, OneAfterThePhaseIsNoStopBeforeIt) {
  application_.begin_period();
  application_.compute(at(0));
  application_.want(at(9.5), to(8, 0));
  EXPECT_EQ(application_.next_stop(), 10);
  EXPECT_FALSE(application_.is_phase_due());
  application_.compute_until(at(10), 10);
  EXPECT_TRUE(application_.is_phase_due());
}

TEST_F(ControlPoints, ComeAfterThePhaseInTheMiddleOfAPeriod) {
  PhaseSpec middle;
  middle.after = 0.6;
  middle.bytes = 1000;
  spec_.phases = {middle};
  SimulatedApplication application{spec_, targets_, 1};
  application.begin_period();
  application.compute(at(0));
  EXPECT_EQ(application.next_stop(), 6);
  application.compute_until(at(6), 6);
  ASSERT_TRUE(application.is_phase_due());
  EXPECT_EQ(application.last_control_point(), 3);
  application.state = ApplicationState::between;
  application.want(at(6), to(8, 0));
  application.operation_done(from_s(1));
  EXPECT_FALSE(application.is_phase_due());
  EXPECT_TRUE(application.is_wanted_now());
  application.pass_control_point();
  EXPECT_EQ(application.last_control_point(), 6);
}

}  // namespace
}  // namespace hocket::sim
