// Tests the decisions of the policies that preempt: dynamic and interrupt; and those of set-10.
#include <gtest/gtest.h>

#include <optional>

#include "policy/policy.hpp"

namespace hocket::policy {
namespace {

using std::chrono::seconds;

class Interruptions : public ::testing::Test {
 protected:
  // Adds an application whose phase takes `alone_s` alone and began at `since_s`.
  model::Application& add(std::int64_t processes, double alone_s, double since_s) {
    const MemberId member{++members_};
    const event::Hello hello{{}, "app", "/bin/app", "mpich", {}, 0, processes};
    model::Application& application = *cluster.join({"node", {}, member}, hello, at(0)).application;
    application.io.phase_s = alone_s;
    application.demand.since = at(since_s);
    return application;
  }
  model::Application& holds(std::int64_t processes, double alone_s, double since_s, double served_s) {
    model::Application& application = add(processes, alone_s, since_s);
    application.demand.granted = true;
    application.demand.served_s = served_s;
    target.holders.push_back({&application, &target, 1, {}});
    return application;
  }
  model::Application& waits(std::int64_t processes, double alone_s, double since_s) {
    model::Application& application = add(processes, alone_s, since_s);
    model::Request request;
    request.id = RequestId{1};
    request.member = MemberId{members_};
    request.application = application.id;
    request.of = &application;
    request.target = &target;
    request.since = at(since_s);
    target.waiting.push_back(request);
    return application;
  }

  static Time at(double s) { return time_from_ns(1'000'000'000) + from_s(s); }
  Decision decide(const Policy& policy, double now_s) {
    return policy.decide({cluster, target, at(now_s), settings}, {});
  }
  static std::optional<double> cost(const Decision& decision, std::string_view action) {
    for (const Cost& one : decision.costs) {
      if (one.action == action) return one.value;
    }
    return std::nullopt;
  }
  std::vector<AppId> granted(const Decision& decision) const {
    std::vector<AppId> apps;
    for (const Grant& grant : decision.grants) apps.push_back(cluster.find(grant.member)->application->id);
    return apps;
  }
  void metric(const char* text) { settings.metric = Metric::parse(text).value(); }

  model::Cluster cluster;
  model::Target target;
  AccessSettings settings;

 private:
  std::uint64_t members_ = 0;
};

// CALCioM gives the costs in section IV-D: f_FCFS = N (2 T_A + T_B - dt), f_interrupt = N (T_A + 2 T_B). It
// interrupts if and only if dt < T_A - T_B.
TEST_F(Interruptions, DynamicComparesTheCostsOfThePaper) {
  constexpr double n = 2048, t_a = 28, t_b = 7;
  for (double dt = 0.5; dt < t_a; dt += 1) {
    SCOPED_TRACE(dt);
    cluster = {};
    target = {};
    const AppId a = holds(2048, t_a, 0, dt).id;
    waits(2048, t_b, dt);
    const Decision decision = decide(dynamic, dt);
    EXPECT_NEAR(*cost(decision, "wait"), n * (2 * t_a + t_b - dt), 1e-3);
    EXPECT_NEAR(*cost(decision, "interrupt"), n * (t_a + 2 * t_b), 1e-3);
    EXPECT_EQ(decision.interruptions, dt < t_a - t_b ? std::vector{a} : std::vector<AppId>{});
    EXPECT_TRUE(decision.grants.empty());
    ASSERT_EQ(decision.choices.size(), 1u);
    EXPECT_EQ(decision.choices[0].action, dt < t_a - t_b ? "interrupt" : "wait");
  }
}

TEST_F(Interruptions, TheMetricDecides) {
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

TEST_F(Interruptions, WhoStopsLateIsNotInterruptedForLittle) {
  model::Application& large = holds(64, 10, 0, 5);
  waits(64, 1, 5);
  EXPECT_FALSE(decide(dynamic, 5).interruptions.empty());
  large.io.stop_s = 4.5;  // of the 5 s that are left: half a second less than waiting
  const Decision late = decide(dynamic, 5);
  EXPECT_TRUE(late.interruptions.empty());
  EXPECT_NEAR(*cost(late, "interrupt"), 64 * (5 + 5 + 1 + 4.5 + 1), 1e-6);
}

TEST_F(Interruptions, WhereThereIsRoomForAllNobodyWaits) {
  model::TargetRecord record;
  record.most_bytes_per_s = 1000;
  target.record = &record;
  model::Application& large = holds(64, 10, 0, 0);
  model::Application& small = waits(64, 10, 0);
  large.io.bytes_per_s = 600;
  small.io.bytes_per_s = 400;
  large.io.measured_on = small.io.measured_on = &record;
  const Decision together = decide(dynamic, 0);
  EXPECT_EQ(granted(together), std::vector{small.id});
  EXPECT_NEAR(*cost(together, "interfere"), 64 * 20, 1e-6);
  record.disturbance = 1;
  EXPECT_TRUE(granted(decide(dynamic, 0)).empty());
}

TEST_F(Interruptions, LowInterferenceIsUsed) {
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

TEST_F(Interruptions, AFormulaMayMakeTheSecondBeginLater) {
  settings.interference = 1.5;
  metric("sum(processes*io_time^2)");
  holds(3, 10, 0, 0);
  waits(2, 10, 0);
  // The minimum of 3 (15 - d/2)^2 + 2 (15 + d/2)^2 is at d = 6. The search tries eighths of 10 s.
  const Decision decision = decide(dynamic, 0);
  EXPECT_TRUE(decision.grants.empty());
  EXPECT_EQ(decision.again, at(6.25));
  EXPECT_EQ(decision.choices.at(0).action, "delay");
}

TEST_F(Interruptions, NobodyIsInterruptedWithoutEnd) {
  model::Application& large = holds(64, 100, 0, 10);
  waits(64, 1, 10);
  large.demand.interruptions = settings.most_interruptions - 1;
  for (const Policy* policy : {&dynamic, &interrupt}) EXPECT_FALSE(decide(*policy, 10).interruptions.empty());
  large.demand.interruptions = settings.most_interruptions;
  for (const Policy* policy : {&dynamic, &interrupt}) EXPECT_TRUE(decide(*policy, 10).interruptions.empty());
}

TEST_F(Interruptions, WhoHasWaitedForTooLongIsNotOvertaken) {
  const AppId old = waits(4, 100, 0).id;
  const AppId young = waits(4, 1, 50).id;
  for (const Policy* policy : {&dynamic, &interrupt}) EXPECT_EQ(granted(decide(*policy, 51)), std::vector{young});
  EXPECT_EQ(granted(decide(interrupt, 61)), std::vector{old});
  EXPECT_EQ(granted(decide(dynamic, 61)), (std::vector{old, young})) << "beside it, but not before it";
  settings.interference = 64;
  EXPECT_EQ(granted(decide(dynamic, 61)), std::vector{old});
}

TEST_F(Interruptions, ManyAreServedTheShortestFirst) {
  metric("io-time");
  std::vector<AppId> apps;
  for (int i = 0; i < 20; ++i) apps.push_back(waits(8, 20 - i, i * 0.01).id);
  EXPECT_EQ(granted(decide(dynamic, 1)), std::vector{apps.back()});
}

TEST_F(Interruptions, AMetricWithoutAValueLeavesItToFirstComeFirstServed) {
  metric("sum(2^io_time)");
  const AppId first = waits(8, 2000, 0).id;
  for (const int others : {1, 8}) {
    for (int i = 0; i < others; ++i) waits(8, 2000, i + 1);
    EXPECT_EQ(granted(decide(dynamic, 20)), std::vector{first});
  }
  holds(8, 3000, 0, 1);
  const Decision decision = decide(dynamic, 20);
  EXPECT_TRUE(decision.grants.empty() && decision.interruptions.empty());
}

TEST_F(Interruptions, NothingIsDecidedWhileOneIsAboutToPause) {
  holds(64, 100, 0, 10);
  waits(64, 1, 10);
  target.holders.front().pausing = true;
  for (const Policy* policy : {&dynamic, &interrupt}) {
    const Decision decision = decide(*policy, 10);
    EXPECT_TRUE(decision.grants.empty() && decision.interruptions.empty());
  }
}

TEST_F(Interruptions, TheLastToComeGoesFirstAndTheLastStoppedGoesOnFirst) {
  model::Application& first = waits(8, 10, 0);
  model::Application& second = waits(8, 10, 1);
  EXPECT_EQ(granted(decide(interrupt, 2)), std::vector{second.id});
  first.demand.granted = second.demand.granted = true;
  target.waiting.front().since = at(5);
  target.waiting.back().since = at(3);
  EXPECT_EQ(granted(decide(interrupt, 6)), std::vector{first.id});
}

TEST_F(Interruptions, SetsShareAndOneOfEachIsServed) {
  const AppId frequent = waits(8, 1, 10).id;  // set of periods around 10 s
  const AppId also = waits(8, 1, 12).id;
  const AppId rare = waits(8, 1, 100).id;
  const Decision decision = decide(set_10, 100);
  EXPECT_EQ(granted(decision), (std::vector{frequent, rare}));
  ASSERT_EQ(decision.shares.size(), 2u);
  EXPECT_EQ(decision.shares[0].application, frequent);
  EXPECT_NEAR(decision.shares[0].part, 10.0 / 11, 1e-9);
  EXPECT_NEAR(decision.shares[1].part, 1.0 / 11, 1e-9);
  EXPECT_EQ(decision.choices.at(0).application, also);
}

TEST_F(Interruptions, WhoBeginsWithALongPhaseIsInNoSetOfShortPeriods) {
  const AppId large = waits(8, 100, 0.01).id;  // 100 s of I/O, right after its start
  const AppId small = waits(8, 1, 10).id;
  const Decision decision = decide(set_10, 11);
  ASSERT_EQ(decision.shares.size(), 2u);
  EXPECT_EQ(decision.shares[0].application, small);
  EXPECT_EQ(decision.shares[1].application, large);
}

}  // namespace
}  // namespace hocket::policy
