// Tests policy `dynamic`, and how long a request may be overtaken under it and under `interrupt`.
#include "policy/testing.hpp"

namespace hocket::policy {
namespace {

class DynamicTest : public testing::OneTarget {};

// CALCioM gives the costs in section IV-D: f_FCFS = N (2 T_A + T_B - dt), f_interrupt = N (T_A + 2 T_B). It
// interrupts if and only if dt < T_A - T_B.
TEST_F(DynamicTest, DynamicComparesTheCostsOfThePaper) {
  constexpr double n = 2048, t_a = 28, t_b = 7;
  for (double dt = 0.5; dt < t_a; dt += 1) {
    SCOPED_TRACE(dt);
    cluster = {};
    target = {};
    const AppId a = holds(2048, t_a, 0, dt).id;
    waits(2048, t_b, dt);
    const AccessDecision decision = decide(dynamic, dt);
    EXPECT_NEAR(*cost(decision, "wait"), n * (2 * t_a + t_b - dt), 1e-3);
    EXPECT_NEAR(*cost(decision, "interrupt"), n * (t_a + 2 * t_b), 1e-3);
    EXPECT_EQ(decision.interruptions, dt < t_a - t_b ? std::vector{a} : std::vector<AppId>{});
    EXPECT_TRUE(decision.grants.empty());
    ASSERT_EQ(decision.choices.size(), 1u);
    EXPECT_EQ(decision.choices[0].action, dt < t_a - t_b ? "interrupt" : "wait");
  }
}

TEST_F(DynamicTest, TheMetricDecides) {
  const AppId large = holds(2048, 20, 0, 10).id;
  waits(16, 9, 10);
  EXPECT_TRUE(decide(dynamic, 10).interruptions.empty()) << "16 processes save little of 2048's time";
  metric("io-time");
  EXPECT_EQ(decide(dynamic, 10).interruptions, std::vector{large});
  metric("interference");
  EXPECT_EQ(decide(dynamic, 10).interruptions, std::vector{large});
  metric("makespan");
  EXPECT_TRUE(decide(dynamic, 10).interruptions.empty())
      << "each order ends at the same time: nothing is stopped for it";
}

// Reports the iterations of an application, from which its FLOP/s follow.
void computes(model::Application& application, double flops) {
  constexpr double iteration_s = 0.5;
  for (int report = 0; report < 2; ++report) application.iterations.add(4, iteration_s, 0);  // the first is not used
  application.flop_per_iteration = flops * iteration_s;
}

// CALCioM, sections I and II-E. By I/O time the shorter one goes first.
TEST_F(DynamicTest, FlopsMayChangeWhoGoesFirst) {
  model::Application& longer = waits(4, 10, 0);
  model::Application& shorter = waits(4, 6, 0);
  const auto first = [this](const char* text) {
    metric(text);
    return granted(decide(dynamic, 0));
  };
  EXPECT_EQ(first("io-time"), std::vector{shorter.id});
  EXPECT_EQ(first("flops*io_time"), std::vector{shorter.id}) << "without FLOP/s, the processes stand for them";
  computes(longer, 3e9);
  EXPECT_EQ(first("flops*io_time"), std::vector{shorter.id}) << "those of one cannot be compared with processes";
  computes(shorter, 1e9);
  EXPECT_EQ(first("flops*io_time"), std::vector{longer.id}) << "3 * 10 + 1 * 16 < 1 * 6 + 3 * 16";
  EXPECT_EQ(first("io-time"), std::vector{shorter.id});
}

TEST_F(DynamicTest, FlopsMayChangeWhoIsInterrupted) {
  model::Application& holder = holds(4, 10, 0, 0);
  computes(holder, 3e9);
  computes(waits(4, 6, 0), 1e9);
  metric("io-time");
  EXPECT_EQ(decide(dynamic, 0).interruptions, std::vector{holder.id});
  metric("flops*io_time");
  const AccessDecision by_flops = decide(dynamic, 0);
  EXPECT_TRUE(by_flops.interruptions.empty());
  EXPECT_NEAR(*cost(by_flops, "wait"), 3e9 * 10 + 1e9 * 16, 1e3);
  EXPECT_NEAR(*cost(by_flops, "interrupt"), 1e9 * 6 + 3e9 * 16, 1e3);
}

TEST_F(DynamicTest, RunTimesMayChangeWhoGoesFirst) {
  model::Application& longer = waits(4, 10, 0);
  model::Application& shorter = waits(4, 6, 0);
  longer.arrived = at(-50);
  metric("max(run_time)");
  EXPECT_EQ(granted(decide(dynamic, 0)), std::vector{longer.id}) << "60 s instead of 66 s";
  longer.arrived = shorter.arrived = at(0);
  metric("sum(run_time)");
  EXPECT_EQ(granted(decide(dynamic, 0)), std::vector{shorter.id});
}

TEST_F(DynamicTest, WhoStopsLateIsNotInterruptedForLittle) {
  model::Application& large = holds(64, 10, 0, 5);
  waits(64, 1, 5);
  EXPECT_FALSE(decide(dynamic, 5).interruptions.empty());
  large.io.stop_s = 4.5;  // of the 5 s that are left: half a second less than waiting
  const AccessDecision late = decide(dynamic, 5);
  EXPECT_TRUE(late.interruptions.empty());
  EXPECT_NEAR(*cost(late, "interrupt"), 64 * (5 + 5 + 1 + 4.5 + 1), 1e-6);
}

// CALCioM, Fig. 10: who stops between files only, or between rounds. No pause has come yet.
TEST_F(DynamicTest, AnAnnouncedGrainCountsBeforeTheFirstPause) {
  model::Application& large = holds(64, 10, 0, 5.5);
  waits(64, 1, 5.5);
  large.granted = 1;
  large.io.bytes_per_s = 100;
  model::announce(large, {1000, "", 2});
  EXPECT_TRUE(decide(dynamic, 5.5).interruptions.empty()) << "its second file lasts as long as it does";
  EXPECT_NEAR(*cost(decide(dynamic, 5.5), "interrupt"), 64 * (5.5 + 4.5 + 1 + 4.5 * 0.999 + 1), 64 * 0.01);
  model::announce(large, {1000, "", 2, 50, 10});
  EXPECT_FALSE(decide(dynamic, 5.5).interruptions.empty()) << "it stops after a round of 0.1 s";
}

TEST_F(DynamicTest, WhereThereIsRoomForAllNobodyWaits) {
  model::TargetRecord record;
  record.most_bytes_per_s = 1000;
  target.record = &record;
  model::Application& large = holds(64, 10, 0, 0);
  model::Application& small = waits(64, 10, 0);
  large.io.bytes_per_s = 600;
  small.io.bytes_per_s = 400;
  large.io.measured_on = small.io.measured_on = &record;
  const AccessDecision together = decide(dynamic, 0);
  EXPECT_EQ(granted(together), std::vector{small.id});
  EXPECT_NEAR(*cost(together, "interfere"), 64 * 20, 1e-6);
  record.disturbance = 1;
  EXPECT_TRUE(granted(decide(dynamic, 0)).empty());
}

TEST_F(DynamicTest, LowInterferenceIsUsed) {
  holds(64, 10, 0, 2);
  const AppId second = waits(64, 10, 2).id;
  EXPECT_TRUE(decide(dynamic, 2).grants.empty()) << "assumed: each is twice as slow";
  model::TargetRecord record;
  record.interference = 1.4;
  target.record = &record;
  EXPECT_EQ(granted(decide(dynamic, 2)), std::vector{second});
  // A measurement of one of the applications has precedence over the target's.
  cluster.find(second)->io.interference = 14;
  EXPECT_TRUE(decide(dynamic, 2).grants.empty());
}

TEST_F(DynamicTest, AFormulaMayMakeTheSecondBeginLater) {
  settings.interference = 1.5;
  metric("sum(processes*io_time^2)");
  holds(3, 10, 0, 0);
  waits(2, 10, 0);
  // The minimum of 3 (15 - d/2)^2 + 2 (15 + d/2)^2 is at d = 6. The search tries eighths of 10 s.
  const AccessDecision decision = decide(dynamic, 0);
  EXPECT_TRUE(decision.grants.empty());
  EXPECT_EQ(decision.again, at(6.25));
  EXPECT_EQ(decision.choices.at(0).action, "delay");
}

TEST_F(DynamicTest, WhoHasWaitedForTooLongIsNotOvertaken) {
  const AppId old = waits(4, 100, 0).id;
  const AppId young = waits(4, 1, 50).id;
  for (const Policy* policy : {&dynamic, &interrupt}) EXPECT_EQ(granted(decide(*policy, 51)), std::vector{young});
  EXPECT_EQ(granted(decide(interrupt, 61)), std::vector{old});
  EXPECT_EQ(granted(decide(dynamic, 61)), (std::vector{old, young})) << "beside it, but not before it";
  settings.interference = 64;
  EXPECT_EQ(granted(decide(dynamic, 61)), std::vector{old});
}

TEST_F(DynamicTest, ManyAreServedTheShortestFirst) {
  metric("io-time");
  std::vector<AppId> apps;
  for (int i = 0; i < 20; ++i) apps.push_back(waits(8, 20 - i, i * 0.01).id);
  EXPECT_EQ(granted(decide(dynamic, 1)), std::vector{apps.back()});
}

TEST_F(DynamicTest, AMetricWithoutAValueLeavesItToFirstComeFirstServed) {
  metric("sum(2^io_time)");
  const AppId first = waits(8, 2000, 0).id;
  for (const int others : {1, 8}) {
    for (int i = 0; i < others; ++i) waits(8, 2000, i + 1);
    EXPECT_EQ(granted(decide(dynamic, 20)), std::vector{first});
  }
  holds(8, 3000, 0, 1);
  const AccessDecision decision = decide(dynamic, 20);
  EXPECT_TRUE(decision.grants.empty() && decision.interruptions.empty());
}

}  // namespace
}  // namespace hocket::policy
