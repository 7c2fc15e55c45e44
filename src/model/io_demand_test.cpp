#include "model/io_demand.hpp"

#include <gtest/gtest.h>

#include "model/application.hpp"

namespace hocket::model {
namespace {

using std::chrono::seconds;

class Demand : public ::testing::Test {
 protected:
  static Time at(double s) { return time_from_ns(1'000'000'000) + from_s(s); }
  void begin(Application& application, std::int64_t phase_bytes, double now_s) {
    application.demand = {};
    demand(application, {RequestId{1}, "disk", {}, {}, 0, phase_bytes}, at(now_s));
    count_progress(target, at(now_s), 2);
    target.holders.push_back({&application, &target, 1, {}});
    application.held = {std::prev(target.holders.end())};
    begin_progress(target.holders.back());
    application.demand.granted = true;
  }
  void end(Application& application, double io_s, std::int64_t bytes, double now_s) {
    count_progress(target, at(now_s), 2);
    const auto holder = application.held.at(0);
    end_progress(*holder);
    learn(application, target.record, from_s(io_s), bytes);
    target.holders.erase(holder);
    application.held.clear();
  }

  TargetRecord record;
  Target target;
  Application a, b;
  Demand() {
    a.processes = b.processes = 4;
    target.record = &record;
    target.served = at(0);
  }
};

TEST_F(Demand, WhatWasPreparedAndMovedTellsWhatIsLeft) {
  begin(a, 1000, 0);
  EXPECT_EQ(work_of(a, target).alone_s, 1) << "nothing is known";
  a.io.bytes_per_s = 100;
  EXPECT_EQ(work_of(a, target).alone_s, 10);
  count_progress(target, at(2), 2);
  EXPECT_NEAR(work_of(a, target).left_s, 8, 1e-9);
  Request step, operation;
  step.target = operation.target = &target;
  told_progress(a, operation, 500);
  EXPECT_NEAR(work_of(a, target).left_s, 5, 1e-9);
  moved(a, target, 600);
  EXPECT_NEAR(work_of(a, target).left_s, 4, 1e-9);
  told_progress(a, step, 600);
  EXPECT_NEAR(work_of(a, target).left_s, 4, 1e-9) << "the same bytes";
  operation.before = 600;
  told_progress(a, operation, 100);
  EXPECT_NEAR(work_of(a, target).left_s, 3, 1e-9);
  moved(a, target, 300);
  EXPECT_NEAR(work_of(a, target).left_s, 1, 1e-9);
  moved(a, target, 900);
  EXPECT_GT(work_of(a, target).left_s, 0) << "it does more than was said";
  EXPECT_LT(work_of(a, target).left_s, 0.5);
}

TEST_F(Demand, OfTwoAtOnceEachIsSlower) {
  a.io.phase_s = b.io.phase_s = 10;
  begin(a, 0, 0);
  begin(b, 0, 4);
  count_progress(target, at(6), 2);
  EXPECT_NEAR(work_of(a, target).left_s, 10 - 4 - 1, 1e-9);
  EXPECT_NEAR(work_of(b, target).left_s, 10 - 1, 1e-9);
}

// Alone 10 s and 1000 bytes; then the same beside another one, 1.4 times as slow.
TEST_F(Demand, InterferenceIsLearntFromPhasesThatMet) {
  begin(a, 0, 0);
  end(a, 10, 1000, 10);
  EXPECT_NEAR(a.io.bytes_per_s, 100, 1e-9);
  EXPECT_NEAR(record.phase_s, 10, 1e-9);
  EXPECT_EQ(record.interference, 0);
  EXPECT_EQ(interference_of(a, target, 2), 2);
  // 5 s of 12 alone, then 7 beside b: those would have taken 5.
  begin(a, 0, 20);
  begin(b, 0, 25);
  end(a, 12, 1000, 32);
  EXPECT_NEAR(a.io.interference, 1.4, 1e-6);
  EXPECT_NEAR(interference_of(a, target, 2), 1.4, 1e-6);
  EXPECT_NEAR(interference_of(b, target, 2), 1.4, 1e-6) << "of the target";
}

TEST_F(Demand, APhaseThatWasNotSeenTeachesNothing) {
  learn(a, &record, seconds{5}, 100);
  EXPECT_EQ(record.phase_s, 0);
  begin(a, 0, 0);
  learn(a, nullptr, seconds{5}, 100);
  EXPECT_EQ(a.io.phase_s, 5);
}

}  // namespace
}  // namespace hocket::model
