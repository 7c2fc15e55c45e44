// Simulations whose applications forward their I/O (`hocket forward`), with the real coordinator and its policies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "policy/combination.hpp"
#include "sim/simulation.hpp"

namespace hocket::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::int64_t MB = 1'000'000;

// An application that does nothing but its I/O: `operations` of 100 MB each.
ApplicationSpec forwarded(const std::string& name, std::vector<allocation::Choice> bandwidths, std::int64_t operations,
                          std::int64_t nodes = 1) {
  ApplicationSpec spec;
  spec.name = name;
  spec.target = "disk";
  spec.iterations = operations;
  spec.iterations_per_phase = 1;
  model::CurvePoint point;
  point.processes = 1;
  point.iteration_s = 1e-9;
  EXPECT_TRUE(spec.curve.add(point));
  spec.io_bytes = 100.0 * MB;
  spec.nodes = nodes;
  spec.bandwidths = std::move(bandwidths);
  return spec;
}

Scenario forwarding_scenario(std::vector<ApplicationSpec> applications, std::size_t servers, std::int64_t nodes = 4) {
  Scenario scenario;
  scenario.name = "forwarding";
  scenario.nodes = nodes;
  scenario.cores_per_node = 10;
  scenario.targets = {{"disk", 1e15}};
  for (std::size_t i = 1; i <= servers; ++i) scenario.targets[0].servers.push_back({"s" + std::to_string(i)});
  scenario.applications = std::move(applications);
  return scenario;
}

SimulationReport simulated(const Scenario& scenario, const std::string& policy,
                           const policy::ArbitrationSettings& rules = {}) {
  coordinator::CoordinatorSettings settings{};
  settings.policy = policy::parse_combination("interfere+" + policy).value();
  settings.lease = std::chrono::seconds{10};
  settings.turn = std::chrono::minutes{1};
  settings.keep_alive = std::chrono::seconds{1};
  settings.cores = 1000;
  settings.arbitration = rules;
  return Simulation{scenario, std::make_unique<Controller>(settings)}.run();
}

TEST(SimulationOfForwarding, AnApplicationHasTheRateOfItsNumberOfServers) {
  const std::vector<allocation::Choice> curve{{0, 10 * MB}, {1, 100 * MB}, {2, 50 * MB}, {4, 400 * MB}};
  const auto alone = [&](std::size_t servers, const std::string& policy) {
    const SimulationReport report = simulated(forwarding_scenario({forwarded("a", curve, 8)}, servers), policy);
    EXPECT_NEAR(report.forwarded_bandwidth, report.applications[0].bandwidth(), 1);
    return report.applications[0].total_s();
  };
  EXPECT_NEAR(alone(4, "mckp"), 2, 1e-6);
  EXPECT_NEAR(alone(4, "one"), 8, 1e-6);
  EXPECT_NEAR(alone(4, "zero"), 80, 1e-5);
  EXPECT_NEAR(alone(3, "mckp"), 8, 1e-6) << "one of three is better than two";
  EXPECT_NEAR(alone(3, "set-aside"), 16, 1e-6) << "all three, as with two";
}

// The second application comes after 1 s and takes what it is given; the first one goes on with the rest at once.
TEST(SimulationOfForwarding, ANewMapCountsInTheMiddleOfAnOperation) {
  ApplicationSpec second = forwarded("b", {{2, 900 * MB}}, 9);
  second.start_s = 0.5;
  const std::vector<allocation::Choice> curve{{2, 25 * MB}, {4, 50 * MB}};
  const SimulationReport report = simulated(forwarding_scenario({forwarded("a", curve, 1), second}, 4), "mckp");
  // 0.5 s with 4 servers, 1 s with 2, the rest with 4: 25 + 25 + 50 MB.
  EXPECT_NEAR(report.applications[0].total_s(), 2.5, 1e-6);
  EXPECT_NEAR(report.applications[1].total_s(), 1, 1e-6);
  EXPECT_THAT(report.applications[0].served_s,
              ElementsAre(Pair(2, ::testing::DoubleNear(1, 1e-6)), Pair(4, ::testing::DoubleNear(1.5, 1e-6))));
}

TEST(SimulationOfForwarding, AServerThatIsSharedIsDivided) {
  const std::vector<allocation::Choice> curve{{1, 100 * MB}};
  const SimulationReport both =
      simulated(forwarding_scenario({forwarded("a", curve, 2), forwarded("b", curve, 4)}, 1), "one");
  EXPECT_NEAR(both.applications[0].total_s(), 4, 1e-6);
  EXPECT_NEAR(both.applications[1].total_s(), 6, 1e-6) << "the last 2 s alone";
}

TEST(SimulationOfForwarding, AStrictQueueStartsInOrderAsNodesAreFree) {
  const std::vector<allocation::Choice> curve{{1, 100 * MB}};
  Scenario scenario =
      forwarding_scenario({forwarded("a", curve, 2, 3), forwarded("b", curve, 1, 2), forwarded("c", curve, 1, 1)}, 4);
  scenario.fifo = true;
  const SimulationReport report = simulated(scenario, "one");
  EXPECT_NEAR(report.applications[0].start_s, 0, 1e-6);
  EXPECT_NEAR(report.applications[1].start_s, 2, 1e-6) << "4 nodes are too few beside the 3 of a";
  EXPECT_NEAR(report.applications[2].start_s, 2, 1e-6) << "no one overtakes";
  EXPECT_NEAR(report.applications[2].cores_wait_s, 2, 1e-6);
  scenario.fifo = false;
  EXPECT_NEAR(simulated(scenario, "one").applications[2].start_s, 0, 1e-6);
}

TEST(SimulationOfForwarding, OneThatNobodyMeasuredGetsTheNumberOfStatic) {
  ApplicationSpec unknown = forwarded("a", {{1, 10 * MB}, {2, 20 * MB}, {4, 40 * MB}}, 1, 4);
  unknown.measured = false;
  const policy::ArbitrationSettings machine{{}, 8, 4};
  EXPECT_NEAR(simulated(forwarding_scenario({unknown}, 4), "mckp", machine).applications[0].total_s(), 5, 1e-6);
  unknown.measured = true;
  EXPECT_NEAR(simulated(forwarding_scenario({unknown}, 4), "mckp", machine).applications[0].total_s(), 2.5, 1e-6);
}

TEST(SimulationOfForwarding, TheSameScenarioGivesTheSameReport) {
  const std::vector<allocation::Choice> curve{{0, 30 * MB}, {1, 70 * MB}, {2, 100 * MB}};
  Scenario scenario = forwarding_scenario({}, 3);
  for (int i = 0; i < 12; ++i) {
    scenario.applications.push_back(forwarded("a" + std::to_string(i), curve, 1 + i % 3, 1 + i % 4));
    scenario.applications.back().io_jitter = 0.3;
  }
  scenario.fifo = true;
  SimulationReport first = simulated(scenario, "mckp"), second = simulated(scenario, "mckp");
  EXPECT_EQ(to_json(first), to_json(second));
}

}  // namespace
}  // namespace hocket::sim
