#include "sim/best.hpp"

#include <gtest/gtest.h>

#include "policy/combination.hpp"
#include "sim/simulation_testing.hpp"

namespace hocket::sim {
namespace {

using testing::scenario_of;

ApplicationSpec phased_program(const std::string& name, double computing_s, std::vector<double> bytes,
                               std::int64_t periods) {
  ApplicationSpec spec;
  spec.name = name;
  spec.target = "disk";
  spec.processes = 4;
  spec.iterations = 10 * periods;
  spec.iterations_per_phase = 10;
  EXPECT_TRUE(spec.curve.add({4, computing_s / 10}));
  for (const double each : bytes) {
    PhaseSpec phase;
    phase.bytes = each;
    phase.target = "disk";
    spec.phases.push_back(phase);
  }
  return spec;
}

double under(const Scenario& scenario, const policy::Policy& access) {
  coordinator::CoordinatorSettings settings{};
  settings.policy.access = &access;
  settings.lease = std::chrono::seconds{1000};
  settings.turn = std::chrono::minutes{1000};
  settings.keep_alive = std::chrono::seconds{1000};
  return io_with_waits(Simulation{scenario, std::make_unique<Controller>(settings)}.run());
}

// Compares the search with an enumeration: no schedule is better, and no application is slower than uncoordinated.
void is_the_best(const Scenario& scenario) {
  const auto least = least_of_all_schedules(scenario, 200'000);
  ASSERT_TRUE(least) << least.error().text;
  const auto best = best_schedule(scenario);
  ASSERT_TRUE(best) << best.error().text;
  EXPECT_NEAR(io_with_waits(best.value()), least.value(), 1e-6);
  const SimulationReport uncoordinated = Simulation{scenario, nullptr}.run();
  for (std::size_t i = 0; i < uncoordinated.applications.size(); ++i) {
    EXPECT_LE(best.value().applications[i].total_s(), uncoordinated.applications[i].total_s() + 1e-7);
    EXPECT_DOUBLE_EQ(best.value().applications[i].bytes_written, uncoordinated.applications[i].bytes_written);
  }
}

struct Tiny {
  double a_bytes, b_bytes, b_computes, b_starts, interference;
  Grain grain;
  std::int64_t operations;
};

class TinyScenarios : public ::testing::TestWithParam<Tiny> {};

TEST_P(TinyScenarios, HaveNoBetterSchedule) {
  const Tiny& tiny = GetParam();
  ApplicationSpec a = phased_program("a", 3, {tiny.a_bytes}, 2);
  a.grain = tiny.grain;
  a.phases[0].operations = tiny.operations;
  a.phases[0].operation_gap_s = 0.25;
  ApplicationSpec b = phased_program("b", tiny.b_computes, {tiny.b_bytes}, 2);
  b.start_s = tiny.b_starts;
  Scenario scenario = scenario_of({a, b});
  scenario.targets[0].interference = tiny.interference;
  is_the_best(scenario);
}

INSTANTIATE_TEST_SUITE_P(Table, TinyScenarios,
                         ::testing::Values(Tiny{4000, 1000, 3, 0, 1, Grain::round, 1},          //
                                           Tiny{4000, 1000, 3, 0.5, 1, Grain::operation, 1},    //
                                           Tiny{4000, 1000, 3, 1, 1.5, Grain::round, 1},        //
                                           Tiny{2000, 2000, 3, 0.5, 1, Grain::round, 1},        //
                                           Tiny{2000, 2000, 5, 0.5, 1.4, Grain::operation, 1},  //
                                           Tiny{1000, 6000, 2, 0.25, 1.2, Grain::round, 1},     //
                                           Tiny{3000, 500, 1.5, 0.5, 1, Grain::operation, 2},   //
                                           Tiny{3000, 500, 1.5, 0.5, 1.3, Grain::operation, 2}  //
                                           ));

TEST(BestTest, ThreeApplicationsHaveNoBetterSchedule) {
  ApplicationSpec a = phased_program("a", 3, {3000}, 1);
  ApplicationSpec b = phased_program("b", 3.2, {1000}, 1);
  ApplicationSpec c = phased_program("c", 3.3, {500}, 1);
  for (ApplicationSpec* spec : {&a, &b, &c}) spec->grain = Grain::operation;
  is_the_best(scenario_of({a, b, c}));
}

// Two applications that would always meet: if they take turns, both gain.
TEST(BestTest, GainsWhatTakingTurnsGains) {
  ApplicationSpec a = phased_program("a", 10, {4000}, 10);
  ApplicationSpec b = phased_program("b", 10, {4000}, 10);
  b.start_s = 0.001;
  const Scenario scenario = scenario_of({a, b});
  const auto best = best_schedule(scenario);
  ASSERT_TRUE(best);
  const double uncoordinated = io_with_waits(Simulation{scenario, nullptr}.run());
  EXPECT_NEAR(uncoordinated, 2 * 10 * 8, 0.1);
  EXPECT_NEAR(io_with_waits(best.value()), 2 * 10 * 4 + 4, 0.1) << "they meet once";
  EXPECT_LE(io_with_waits(best.value()), under(scenario, policy::fcfs) + 1e-6);
}

// Reads from the page cache neither wait nor make another application wait.
TEST(BestTest, LetsThePageCacheServeAtOnce) {
  ApplicationSpec a = phased_program("a", 1, {10000, 5000}, 1);
  ApplicationSpec b = phased_program("b", 1, {9000, 9000}, 2);
  for (ApplicationSpec* spec : {&a, &b}) {
    spec->phases[1].reads = spec->phases[1].cached = true;
    spec->cache_bytes_per_s = 1e6;
  }
  const Scenario scenario = scenario_of({a, b});
  const auto best = best_schedule(scenario);
  ASSERT_TRUE(best);
  EXPECT_LE(io_with_waits(best.value()), io_with_waits(Simulation{scenario, nullptr}.run()));
  EXPECT_LT(io_with_waits(best.value()), under(scenario, policy::fcfs));
}

TEST(BestTest, IsTheSameEachTime) {
  ApplicationSpec a = phased_program("a", 2, {3000}, 3);
  ApplicationSpec b = phased_program("b", 3, {1000}, 3);
  a.jitter = b.jitter = 0.2;
  const Scenario scenario = scenario_of({a, b});
  EXPECT_EQ(to_json(best_schedule(scenario).value()), to_json(best_schedule(scenario).value()));
}

TEST(BestTest, RefusesMoreApplicationsThanItCanSearch) {
  std::vector<ApplicationSpec> many;
  for (std::size_t i = 0; i <= most_searched; ++i) many.push_back(phased_program("a" + std::to_string(i), 1, {1}, 1));
  const auto best = best_schedule(scenario_of(many));
  ASSERT_FALSE(best);
  EXPECT_NE(best.error().text.find("has 7"), std::string::npos) << best.error().text;
}

}  // namespace
}  // namespace hocket::sim
