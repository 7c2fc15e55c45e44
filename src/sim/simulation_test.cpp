#include "sim/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "policy/combination.hpp"
#include "trace/reader.hpp"

namespace hocket::sim {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::Field;

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

Scenario scenario_of(std::vector<ApplicationSpec> applications) {
  Scenario scenario;
  scenario.name = "test";
  scenario.cores_per_node = 64;
  scenario.targets = {{"disk", 1000, 1, Sharing::fair}};
  scenario.applications = std::move(applications);
  return scenario;
}

coordinator::Settings settings_of(const policy::Policy& access) {
  coordinator::Settings settings{};
  settings.policy.access = &access;
  settings.lease = std::chrono::seconds{10};
  settings.turn = std::chrono::minutes{1};
  settings.keep_alive = std::chrono::seconds{1};
  settings.cores = 64;
  return settings;
}

Report run(const Scenario& scenario, const policy::Policy* access = nullptr) {
  std::unique_ptr<Controller> controller;
  if (access != nullptr) controller = std::make_unique<Controller>(settings_of(*access));
  return Simulation{scenario, std::move(controller)}.run();
}

TEST(SimulationTest, OneAloneTakesWhatItsCurveAndTheTargetSay) {
  const Report report = run(scenario_of({program("a", 0.5, 2000, 7)}));
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

// The values that SimGrid 3.32 gives: tests/simgrid/shared_target.cpp.
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
  const Report report = run(scenario_of(programs));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_THAT(report.applications[i].end_s, DoubleNear(cases[i].end, 1e-5)) << "program " << i;
    EXPECT_THAT(report.applications[i].io_s, DoubleNear(cases[i].io, 1e-5)) << "program " << i;
  }
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

// What an application does does not depend on the others, nor on the policy: only when.
TEST(SimulationTest, WorkIsConserved) {
  const Scenario scenario = scenario_of(crowd(8, 0.3));
  const Report uncoordinated = run(scenario);
  const Report blocking = run(scenario, &policy::fcfs);
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
  scenario.until_s = 13;  // in its second phase
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
  const Report report = run(scenario_of(programs), &policy::fcfs);
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

// The trace is the daemon's: its events, given to another coordinator, lead to the commands that are in it, in order.
TEST(SimulationTest, ItsTraceCanBeReplayed) {
  const Scenario scenario = scenario_of(crowd(8, 0.3));
  const coordinator::Settings settings = settings_of(policy::fcfs);
  const std::string path = testing::TempDir() + "hocket-simulated-" + std::to_string(getpid()) + ".jsonl";
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

// ---- control points ------------------------------------------------------------------------------------------------

event::Reconfigure to(std::int64_t processes, std::int64_t at_iteration) {
  event::Reconfigure command;
  command.request = RequestId{1};
  command.processes = processes;
  command.at_iteration = at_iteration;
  return command;
}

class ControlPoints : public testing::Test {
 protected:
  ControlPoints() { spec_.control_every = 3; }
  static Time at(double s) { return Simulation::start + from_s(s); }

  ApplicationSpec spec_ = program("a", 1, 1000, 2);
  TargetSpec target_{"disk", 1000, 1, Sharing::fair};
  Application application_{spec_, target_, 1};
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
  const Resize resize = application_.take_wanted(at(9));
  EXPECT_EQ(application_.cost(resize, {1, 0.25, 0}), from_s(2));
  application_.resized(at(11), resize);
  application_.compute(at(11));
  EXPECT_EQ(application_.processes(), 8);
  EXPECT_EQ(application_.time_of(10), at(11.5));
}

TEST_F(ControlPoints, OneThatIsPastIsRefusedAsLibhocketDoes) {
  application_.begin_period();
  application_.compute(at(0));
  application_.want(at(4), to(8, 5));  // first seen at 6
  application_.compute_until(at(6), 6);
  ASSERT_TRUE(application_.is_wanted_now());
  EXPECT_EQ(application_.refusal(), "iteration 5 is past, the application has done 6");
}

TEST_F(ControlPoints, OneAfterThePhaseIsNoStopBeforeIt) {
  application_.begin_period();
  application_.compute(at(0));
  application_.want(at(9.5), to(8, 0));
  EXPECT_EQ(application_.next_stop(), 10);
  EXPECT_TRUE(application_.has_phase());
}

}  // namespace
}  // namespace hocket::sim
