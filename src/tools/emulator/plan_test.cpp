#include "emulator/plan.hpp"

#include <gtest/gtest.h>

#include "emulator/plan_reader.hpp"

namespace hocket::emulator {
namespace {

EmulationPlan plan_of(std::vector<std::int64_t> phases, std::vector<std::pair<int, std::int64_t>> groups) {
  EmulationPlan plan;
  for (const std::int64_t iterations : phases) plan.phases.push_back({iterations, {}});
  for (const auto& [processes, iterations] : groups) plan.groups.push_back({processes, iterations, 1, "", false});
  return plan;
}

TEST(Plan, IterationsOfGroupsCountOverAllPhases) {
  const EmulationPlan plan = plan_of({2, 5, 1}, {{1, 3}, {2, 5}});
  EXPECT_EQ(plan.iterations(), 8);
  EXPECT_EQ(plan.first_iteration(1), 3);
  std::int64_t iteration = 0;
  for (std::size_t phase = 0; phase < plan.phases.size(); phase++) {
    for (std::int64_t in_phase = 0; in_phase < plan.phases[phase].iterations; in_phase++, iteration++) {
      EXPECT_EQ(position_of(plan, iteration).phase, phase) << iteration;
      EXPECT_EQ(position_of(plan, iteration).iteration, in_phase) << iteration;
    }
  }
}

TEST(Plan, AGroupIsFoundByItsSizeIfItHasBegun) {
  const EmulationPlan plan = plan_of({12}, {{2, 4}, {4, 4}, {2, 4}});
  EXPECT_EQ(plan.group_of(0, 2), 0U);
  EXPECT_EQ(plan.group_of(3, 4), std::nullopt);
  EXPECT_EQ(plan.group_of(4, 4), 1U);
  EXPECT_EQ(plan.group_of(7, 2), 0U);
  EXPECT_EQ(plan.group_of(11, 2), 2U);
  EXPECT_EQ(plan.group_of(11, 3), std::nullopt);
}

TEST(Plan, AStageTakesPlaceInEachIterationOfItsNumber) {
  Stage stage;
  stage.every = 3;
  stage.repeat = 2;
  std::int64_t before = 0;
  for (std::int64_t iteration = 0; iteration < 20; iteration++) {
    EXPECT_EQ(times_before(stage, iteration), before) << iteration;
    if (takes_place(stage, iteration)) before += stage.repeat;
  }
  EXPECT_EQ(before, 12);
}

TEST(PlanReader, ReadsWhatPythonWrites) {
  const EmulationPlan plan = read_plan(R"({"name": "cg", "seed": 7, "resize_limit_s": 9.5, "data":
      {"bytes": 8, "constant_bytes": 6, "replicated_bytes": 5, "replicated_constant_bytes": 4,
       "shares": [[0.25, 0.75]], "imbalance": 1.0, "distribution": "one"},
    "groups": [{"processes": 2, "iterations": 10, "factor": 0.5, "methods": "", "in_background": false},
               {"processes": 4, "iterations": 5, "factor": 0.25, "methods": "merge/join", "in_background": true}],
    "phases": [{"iterations": 15, "stages": [
      {"kind": "memory", "name": "m", "every": 2, "repeat": 3, "time_s": 0.5, "ends_by": "operations", "granularity": 64,
       "imbalance": 1.0, "distribution": "one", "jitter": 0.1, "bytes": 0, "dimensions": 1, "waits_for": -1,
       "access": "collective", "request_bytes": 0, "pattern": "contiguous", "append": false, "sync": false,
       "operation_s": 1e-4, "factors": [[1, 1.0], [4, 0.3]], "shares": [[0.25, 0.75]]}]}]})");
  EXPECT_EQ(plan.iterations(), 15);
  EXPECT_EQ(plan.data.constant_bytes, 6);
  EXPECT_EQ(plan.data.replicated_bytes, 5);
  EXPECT_EQ(plan.data.replicated_constant_bytes, 4);
  EXPECT_EQ(plan.data.shares[0][1], 0.75);
  EXPECT_EQ(plan.groups[1].methods, "merge/join");
  EXPECT_TRUE(plan.groups[1].in_background);
  const Stage& stage = plan.phases[0].stages[0];
  EXPECT_EQ(stage.kind, Kind::memory);
  EXPECT_FALSE(stage.ends_by_time);
  EXPECT_FALSE(stage.ends_by_cpu_time);
  EXPECT_EQ(stage.factors, (Factors{{1, 1.0}, {4, 0.3}}));
  EXPECT_EQ(stage.shares[0][1], 0.75);
  EXPECT_THROW(read_plan("{}"), std::exception);
}

}  // namespace
}  // namespace hocket::emulator
