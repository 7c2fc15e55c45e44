// Simulations whose applications write through I/O servers, with the real coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "policy/combination.hpp"
#include "sim/simulation_testing.hpp"

namespace hocket::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double microseconds = 1e-6;

// An application that only writes: 1,000 requests of 10 kB at each of four servers in an operation.
ApplicationSpec writer(const std::string& name, std::int64_t operations) {
  ApplicationSpec spec;
  spec.name = name;
  spec.target = "disk";
  spec.processes = 100;
  spec.iterations = operations;
  spec.iterations_per_phase = 1;
  model::CurvePoint point;
  point.processes = spec.processes;
  point.iteration_s = 1e-6;
  EXPECT_TRUE(spec.curve.add(point));
  spec.io_bytes = 4 * 1000 * 1e4;
  spec.request_bytes = 1e4;
  return spec;
}

// Without load an operation takes 1 s, which the disk decides: handling takes 0.2 s.
Scenario scenario_with_servers(std::vector<ApplicationSpec> applications, std::size_t servers = 4) {
  Scenario scenario;
  scenario.name = "servers";
  scenario.nodes = 1;
  scenario.cores_per_node = 1000;
  scenario.targets = {{"disk", 4e7}};
  for (std::size_t i = 1; i <= servers; ++i)
    scenario.targets[0].servers.push_back({"s" + std::to_string(i), 200 * microseconds});
  scenario.applications = std::move(applications);
  return scenario;
}

coordinator::CoordinatorSettings settings_with_hold_off(const policy::Policy& access) {
  coordinator::CoordinatorSettings settings = testing::settings_of(access, 1000);
  settings.slow_server_hold_off = std::chrono::minutes{10};
  return settings;
}

// What a recorded simulation showed.
struct Record {
  std::vector<std::string> slow;                                // servers of SLOW_IO_SERVER
  std::vector<std::pair<std::uint64_t, std::int64_t>> adopted;  // member and epoch
  std::vector<double> operations_s;                             // from START_IO to FINISH_IO
  std::vector<Time> began;
  std::size_t loads = 0;
};

class Recorder : public Controller {
 public:
  Recorder(const coordinator::CoordinatorSettings& settings, Record& record) : Controller(settings), record_(record) {}

  const std::vector<coordinator::Command>& send(Time now, const MemberIdentity& from, event::Body body) override {
    if (std::holds_alternative<event::StartIo>(body)) record_.began.push_back(now);
    if (const auto* finish = std::get_if<event::FinishIo>(&body)) record_.operations_s.push_back(to_s(finish->io));
    record_.loads += std::holds_alternative<event::ServerLoad>(body);
    if (const auto* adopted = std::get_if<event::MapAdopted>(&body))
      record_.adopted.emplace_back(from.id.value, adopted->epoch);
    const auto& commands = Controller::send(now, from, std::move(body));
    for (const coordinator::Command& command : commands) {
      if (const auto* slow = std::get_if<event::SlowIoServer>(&command.body)) record_.slow.push_back(slow->server);
    }
    return commands;
  }

 private:
  Record& record_;
};

SimulationReport run_recorded(const Scenario& scenario, const coordinator::CoordinatorSettings& settings,
                              Record& record) {
  return Simulation{scenario, std::make_unique<Recorder>(settings, record)}.run();
}

SimulationReport alone(const Scenario& scenario) { return Simulation{scenario, nullptr}.run(); }

TEST(SimulationWithServers, TheSlowerOfDiskAndServersDecides) {
  const SimulationReport disk = alone(scenario_with_servers({writer("a", 2)}));
  EXPECT_NEAR(disk.applications[0].io_s, 2, 1e-6);
  Scenario loaded = scenario_with_servers({writer("a", 2)});
  loaded.targets[0].servers[3].loads = {{0, 0, 2800 * microseconds}};  // 1,000 requests of 3 ms
  const SimulationReport servers = alone(loaded);
  EXPECT_NEAR(servers.applications[0].io_s, 6, 1e-6);
  EXPECT_NEAR(servers.applications[0].io_alone_s, 2, 1e-6);  // no load is injected alone
}

TEST(SimulationWithServers, ServersThatAreTheLimitCountInTheTimeAlone) {
  Scenario scenario = scenario_with_servers({writer("a", 1)});
  for (ServerSpec& server : scenario.targets[0].servers) server.service_s = 2e-3;
  EXPECT_NEAR(alone(scenario).applications[0].io_alone_s, 2, 1e-6);
  EXPECT_NEAR(alone(scenario).applications[0].io_s, 2, 1e-6);
}

TEST(SimulationWithServers, LoadThatComesInTheMiddleSlowsTheRest) {
  Scenario scenario = scenario_with_servers({writer("a", 1)});
  scenario.targets[0].servers[0].loads = {{0.5, 1.5, 2800 * microseconds}};
  // Half at the disk's rate, a third of the other half at a third of it, and the rest at the disk's.
  EXPECT_NEAR(alone(scenario).applications[0].io_s, 0.5 + 1 + (0.5 - 1.0 / 3), 1e-5);
}

TEST(SimulationWithServers, AWriterPastTheServersIsNotSlowed) {
  ApplicationSpec past = writer("a", 1);
  past.request_bytes = 0;
  Scenario scenario = scenario_with_servers({past});
  scenario.targets[0].servers[0].loads = {{0, 0, 1}};
  EXPECT_NEAR(alone(scenario).applications[0].io_s, 1, 1e-6);
}

TEST(SimulationWithServers, TwoApplicationsShareTheServersUnlessTheyAreScheduled) {
  Scenario scenario = scenario_with_servers({writer("a", 1), writer("b", 1)});
  for (ServerSpec& server : scenario.targets[0].servers) server.service_s = 2e-3;
  scenario.targets[0].bandwidth = 1e12;
  for (const ApplicationResult& one : alone(scenario).applications) EXPECT_NEAR(one.io_s, 4, 1e-4) << one.name;
  Record record;
  const SimulationReport scheduled = run_recorded(scenario, settings_with_hold_off(policy::fcfs), record);
  for (const ApplicationResult& one : scheduled.applications) EXPECT_NEAR(one.io_s, 2, 1e-4) << one.name;
  EXPECT_NEAR(scheduled.applications[0].wait_s + scheduled.applications[1].wait_s, 2, 1e-4);
}

// The elastic collective I/O of CLARISSE, section V-B.
TEST(SimulationWithServers, ASlowServerIsSetAsideAndTheNextOperationIsInANewEpoch) {
  Scenario scenario = scenario_with_servers({writer("a", 6)});
  scenario.targets[0].servers[2].loads = {{2, 0, 2800 * microseconds}};  // during the third operation
  Record record;
  run_recorded(scenario, settings_with_hold_off(policy::interfere), record);
  EXPECT_THAT(record.slow, ElementsAre("s3"));
  EXPECT_THAT(record.adopted, ElementsAre(std::pair{1U, 4}, std::pair{1U, 5}));
  ASSERT_EQ(record.operations_s.size(), 6U);
  EXPECT_NEAR(record.operations_s[1], 1, 1e-5);
  EXPECT_NEAR(record.operations_s[2], 3, 1e-4);  // it ends in its epoch
  for (std::size_t i = 3; i < 6; ++i) EXPECT_NEAR(record.operations_s[i], 1, 1e-5) << i;
}

TEST(SimulationWithServers, WithoutTheDetectorTheSlowServerStays) {
  Scenario scenario = scenario_with_servers({writer("a", 4)});
  scenario.targets[0].servers[2].loads = {{0, 0, 2800 * microseconds}};
  coordinator::CoordinatorSettings settings = settings_with_hold_off(policy::interfere);
  settings.slow_server = 0;
  Record record;
  const SimulationReport report = run_recorded(scenario, settings, record);
  EXPECT_THAT(record.slow, IsEmpty());
  EXPECT_NEAR(report.applications[0].io_s, 12, 1e-3);
  EXPECT_NEAR(report.applications[0].io_s, alone(scenario).applications[0].io_s, 1e-6);
}

TEST(SimulationWithServers, ASlowServerReturnsAfterItsHoldOffAndIsFoundAgain) {
  Scenario scenario = scenario_with_servers({writer("a", 12)});
  scenario.targets[0].servers[2].loads = {{0, 0, 2800 * microseconds}};
  coordinator::CoordinatorSettings settings = settings_with_hold_off(policy::interfere);
  settings.slow_server_hold_off = std::chrono::seconds{2};
  Record record;
  EXPECT_EQ(run_recorded(scenario, settings, record).slow_servers, 4);
  EXPECT_THAT(record.slow, ElementsAre("s3", "s3", "s3", "s3"));  // after 2, 4 and 8 s
  EXPECT_EQ(record.adopted.size(), 6U);
}

TEST(SimulationWithServers, HealthyServersStay) {
  Record record;
  run_recorded(scenario_with_servers({writer("a", 10), writer("b", 10)}), settings_with_hold_off(policy::fcfs), record);
  EXPECT_THAT(record.slow, IsEmpty());
  EXPECT_GT(record.loads, 4U * 20);
}

// Gives the application with the lowest id the first server alone.
policy::ServerDecision assign_first(const policy::ServersView& view, const event::Event& event) {
  policy::ServerDecision decision;
  if (!std::holds_alternative<event::Hello>(event.body) || view.cluster.applications().empty()) return decision;
  policy::ServerChange change;
  change.action = policy::ServerChange::Action::assign;
  change.application = AppId{1};
  change.servers = {"s1"};
  decision.changes.push_back(std::move(change));
  return decision;
}
const policy::ServerPolicy assigns{"assigns", "for this test", assign_first};

TEST(SimulationWithServers, AnApplicationWithAMapOfItsOwnUsesItsServersOnly) {
  Scenario scenario = scenario_with_servers({writer("a", 2), writer("b", 2)});
  for (ServerSpec& server : scenario.targets[0].servers) server.service_s = 2e-3;
  scenario.targets[0].bandwidth = 1e12;
  scenario.applications[1].start_s = 100;
  coordinator::CoordinatorSettings settings = settings_with_hold_off(policy::interfere);
  settings.policy.servers = &assigns;
  Record record;
  const SimulationReport report = run_recorded(scenario, settings, record);
  EXPECT_NEAR(report.applications[0].io_s, 2 * 8, 1e-3);  // one server has all 4,000 requests
  EXPECT_NEAR(report.applications[1].io_s, 2 * 2, 1e-3);
}

TEST(SimulationWithServers, APauseSuspendsTheOperationAtTheServersToo) {
  Scenario scenario = scenario_with_servers({writer("a", 1), writer("b", 1)});
  for (ServerSpec& server : scenario.targets[0].servers) server.service_s = 2e-3;
  scenario.targets[0].bandwidth = 1e12;
  scenario.applications[0].io_bytes *= 10;  // 20 s
  scenario.applications[1].start_s = 5;
  coordinator::CoordinatorSettings settings = settings_with_hold_off(policy::interrupt);
  Record record;
  const SimulationReport report = run_recorded(scenario, settings, record);
  EXPECT_EQ(report.applications[0].interruptions, 1);
  EXPECT_NEAR(report.applications[0].io_s, 20, 1e-3);
  EXPECT_NEAR(report.applications[1].io_s, 2, 1e-3);
}

TEST(SimulationWithServers, AreDeterministic) {
  Scenario scenario = scenario_with_servers({writer("a", 5), writer("b", 5)}, 7);
  scenario.applications[0].jitter = 0.3;
  scenario.applications[1].io_jitter = 0.3;
  scenario.targets[0].servers[2].loads = {{1, 4, 2800 * microseconds}};
  Record first;
  Record second;
  const SimulationReport one = run_recorded(scenario, settings_with_hold_off(policy::fcfs), first);
  const SimulationReport other = run_recorded(scenario, settings_with_hold_off(policy::fcfs), second);
  EXPECT_EQ(to_json(one), to_json(other));
  EXPECT_EQ(first.began, second.began);
}

// The paper's largest case: its cost must not depend on clients or requests.
TEST(SimulationWithServers, ManyClientsAndServersAreFewEvents) {
  ApplicationSpec large = writer("a", 10);
  large.processes = large.writers = 15'360;
  model::CurvePoint point;
  point.processes = large.processes;
  point.iteration_s = 1e-6;
  large.curve = {};
  ASSERT_TRUE(large.curve.add(point));
  large.io_bytes = 30e9;
  Scenario scenario = scenario_with_servers({large}, coordinator::Servers::most);
  scenario.targets[0].bandwidth = 1e10;
  const SimulationReport report = alone(scenario);
  EXPECT_LT(report.events, 100);
  EXPECT_NEAR(report.applications[0].io_s, 15'360 * 200 * microseconds * 10, 1e-3);
}

TEST(SimulationWithServers, AnOperationTakesWhatTheFormulaSays) {
  std::mt19937_64 random{7};
  const auto draw = [&](double least, double most) {
    return std::exp(std::uniform_real_distribution{std::log(least), std::log(most)}(random));
  };
  for (int i = 0; i < 200; ++i) {
    ApplicationSpec spec = writer("a", 1);
    spec.writers = static_cast<std::int64_t>(draw(1, 1e4));
    spec.io_bytes = draw(1e3, 1e12);
    spec.request_bytes = draw(1, 1e7);
    Scenario scenario = scenario_with_servers({spec}, static_cast<std::size_t>(draw(1, 50)));
    TargetSpec& target = scenario.targets[0];
    target.bandwidth = draw(1e6, 1e10);
    double longest = spec.io_bytes / target.bandwidth;
    for (ServerSpec& server : target.servers) {
      server.service_s = draw(1e-6, 1e-3);
      server.bandwidth = draw(1e6, 1e10);
      server.loads = {{0, 0, draw(1e-6, 1e-3)}};
      const auto n = static_cast<double>(target.servers.size());
      const auto clients = static_cast<double>(spec.writers);
      const double requests = clients * std::ceil(spec.io_bytes / clients / n / spec.request_bytes);
      const double of_requests = requests * (server.service_s + server.loads[0].delay_s);
      longest = std::max(longest, of_requests + spec.io_bytes / n / server.bandwidth);
    }
    const double took = alone(scenario).applications[0].io_s;
    EXPECT_NEAR(took, longest, 1e-6 * longest + 1e-6) << i;
  }
}

}  // namespace
}  // namespace hocket::sim
