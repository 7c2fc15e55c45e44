#include "model/io_demand.hpp"

#include <gtest/gtest.h>

#include <random>

#include "model/application.hpp"
#include "model/testing.hpp"

namespace hocket::model {
namespace {

using std::chrono::seconds;
using testing::after_1_s;

class Demand : public ::testing::Test {
 protected:
  void begin(Application& application, std::int64_t phase_bytes, double now_s) {
    application.demand = {};
    demand(application, {RequestId{1}, "disk", {}, {}, 0, phase_bytes}, after_1_s(now_s));
    count_progress(target, after_1_s(now_s), 2);
    target.holders.push_back({&application, &target, 1, {}});
    application.held.push_back(std::prev(target.holders.end()));
    begin_progress(target.holders.back());
    application.demand.granted = true;
  }
  void end(Application& application, double io_s, std::int64_t bytes, double now_s) {
    count_progress(target, after_1_s(now_s), 2);
    const auto holder = application.held.front();
    end_progress(*holder);
    learn(application, target.record, from_s(io_s), bytes);
    target.holders.erase(holder);
    application.held.clear();
  }
  void alone_first() {
    for (Application* each : {&a, &b, &c}) {
      begin(*each, 0, 0);
      end(*each, 10, each == &a ? 1000 : 300, 10);
    }
    record.most_bytes_per_s = a.io.bytes_per_s;  // undoes the fading with each phase alone
  }
  static void learn_on(TargetRecord& other, Application& application, double io_s, std::int64_t bytes) {
    application.demand = {};
    application.demand.granted = true;
    learn(application, &other, from_s(io_s), bytes);
  }

  TargetRecord record;
  Target target;
  Application a, b, c;
  Demand() {
    a.processes = b.processes = c.processes = 4;
    target.record = &record;
    target.served = after_1_s(0);
  }
};

TEST_F(Demand, WhatWasPreparedAndMovedTellsWhatIsLeft) {
  begin(a, 1000, 0);
  EXPECT_EQ(work_of(a, target).alone_s, 1) << "nothing is known";
  a.io.bytes_per_s = 100;
  EXPECT_EQ(work_of(a, target).alone_s, 10);
  count_progress(target, after_1_s(2), 2);
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

TEST_F(Demand, AnAnnouncedSizeCountsBeforeProfileAndHistory) {
  record.bytes_per_s = 50;
  ASSERT_TRUE(a.curve.add({4, 1, 0, 3, 0, 1}).ok());
  begin(a, 1000, 0);
  EXPECT_EQ(work_of(a, target).alone_s, 20) << "at the target's rate";
  end(a, 5, 1000, 5);
  begin(a, 4000, 10);
  EXPECT_EQ(work_of(a, target).alone_s, 20) << "at its own";
  begin(a, 0, 20);
  EXPECT_EQ(work_of(a, target).alone_s, 3) << "nothing is announced: the profile";
}

TEST_F(Demand, AnnouncementsThatMissAreNotBelieved) {
  ASSERT_TRUE(a.curve.add({4, 1, 0, 3, 0, 1}).ok());
  double now = 0;
  // Announces a phase that moves 1000 bytes, and returns its expected duration.
  const auto announced = [&](std::int64_t bytes) {
    begin(a, bytes, now);
    const double alone = work_of(a, target).alone_s;
    end(a, 10, 1000, now += 10);
    return alone;
  };
  announced(1000);
  EXPECT_EQ(announced(1200), 12) << "within a fifth";
  EXPECT_EQ(announced(2000), 20);
  EXPECT_EQ(announced(500), 5) << "one has missed";
  EXPECT_EQ(announced(1000), 3) << "two have missed";
  EXPECT_EQ(announced(1000), 3);
  EXPECT_EQ(announced(1000), 10) << "two in a row have held";
  announced(2000);
  announced(1000);
  announced(2000);
  EXPECT_EQ(announced(1000), 3) << "each second one misses";
}

TEST_F(Demand, WhatAnInnerLevelKnowsStaysUntilThePhaseIsOver) {
  begin(a, 1000, 0);
  announce(a, {300, "files=3\n", 3, 5, 20});
  EXPECT_EQ(a.demand.bytes, 300);
  announce(a, {});
  EXPECT_EQ(a.demand.bytes, 300);
  EXPECT_EQ(a.demand.files, 3);
  EXPECT_EQ(a.demand.rounds, 5);
  EXPECT_EQ(a.demand.bytes_per_round, 20);
  EXPECT_EQ(a.demand.info, "files=3\n");
  moved(a, target, 100);
  announce(a, {200, "", 2});
  EXPECT_EQ(a.demand.bytes, 300);
  EXPECT_EQ(a.demand.files, 2);
}

// Four files of 250 bytes at 100 bytes per second: as in CALCioM's Fig. 10, the wait is a saw.
TEST_F(Demand, AnAnnouncedGrainTellsWhenItCanStop) {
  a.io.bytes_per_s = 100;
  begin(a, 1000, 0);
  a.granted = 1;
  EXPECT_EQ(announced_stop_s(a, target), std::nullopt) << "nothing is known of its parts";
  announce(a, {1000, "", 4});
  EXPECT_NEAR(announced_stop_s(a, target).value(), 2.5, 1e-9) << "the first pause has not come";
  count_progress(target, after_1_s(2), 2);
  EXPECT_NEAR(announced_stop_s(a, target).value(), 0.5, 1e-9);
  count_progress(target, after_1_s(2.5), 2);
  EXPECT_NEAR(announced_stop_s(a, target).value(), 2.5, 1e-9) << "the next file has begun";
  announce(a, {1000, "", 4, 5, 50});
  EXPECT_NEAR(announced_stop_s(a, target).value(), 0.5, 1e-9) << "rounds are finer";
  a.granted = 0;
  EXPECT_EQ(announced_stop_s(a, target), 0) << "between two operations";
  a.granted = 1;
  a.io.stop_s = 0.2;
  EXPECT_NEAR(announced_stop_s(a, target).value(), 0.5, 1e-9);
  a.io.stop_s = 0.7;
  EXPECT_EQ(announced_stop_s(a, target), std::nullopt) << "it does not stop between rounds";
  a.io.stop_s = 0;
  for (int i = 0; i < 2; ++i) a.announcements.compare(1000, 10);
  EXPECT_EQ(announced_stop_s(a, target), std::nullopt) << "its announcements are not believed";
}

// Two rounds in each of four files, of 1000 bytes in all; only the bytes tell how long a round is.
TEST_F(Demand, RoundsWithoutTheirBytesTellWhenItCanStop) {
  a.io.bytes_per_s = 100;
  begin(a, 1000, 0);
  a.granted = 1;
  announce(a, {1000, "", 4, 2});
  EXPECT_NEAR(announced_stop_s(a, target).value(), 1.25, 1e-9);
  end(a, 10, 1000, 10);
  begin(a, 1000, 20);
  announce(a, {1000, "", 0, 5});
  EXPECT_NEAR(announced_stop_s(a, target).value(), 2, 1e-9) << "without files it is one";
}

TEST_F(Demand, BytesThatAreAnnouncedAfterTheFilesTellWhenItCanStop) {
  a.io.bytes_per_s = 100;
  begin(a, 0, 0);
  a.granted = 1;
  announce(a, {0, "", 4});
  EXPECT_EQ(announced_stop_s(a, target), std::nullopt) << "files of no known size";
  announce(a, {1000, "", 4});
  EXPECT_NEAR(announced_stop_s(a, target).value(), 2.5, 1e-9);
}

// A step that pauses for longer than the gap between phases is reported in parts.
TEST_F(Demand, WhatIsReportedInPartsIsComparedAsAWhole) {
  for (int i = 0; i < 4; ++i) {
    begin(a, 1000, 100 * i);
    for (int part = 1; part < 4; ++part) learn_part(a, from_s(1), 250, 1000 - 250 * part);
    EXPECT_EQ(a.demand.reported_bytes, 750);
    EXPECT_EQ(a.demand.reported_io, from_s(3));
    end(a, 4, 1000, 100 * i + 10);
    EXPECT_EQ(a.announcements.spare(), 2);
  }
}

// A program prepares once for many equal phases.
TEST_F(Demand, AnAnnouncementThatHasComeTrueIsNotComparedWithLaterIo) {
  begin(a, 1000, 0);
  learn_part(a, from_s(1), 500, 500);
  learn_part(a, from_s(1), 500, 0);
  learn_part(a, from_s(1), 1000, 0);
  end(a, 4, 3000, 10);
  EXPECT_EQ(a.announcements.spare(), 2);
}

TEST_F(Demand, WhatIsLeftAfterAGapDoesNotMiss) {
  for (int i = 0; i < 4; ++i) {
    begin(a, 1000 - 250 * i, 10 * i);
    count_progress(target, after_1_s(10 * i + 2), 2);
    const auto holder = a.held.front();
    end_progress(*holder);
    learn(a, target.record, from_s(2), 250, 750 - 250 * i);
    target.holders.erase(holder);
    a.held.clear();
  }
  EXPECT_TRUE(a.announcements.believed());
  EXPECT_EQ(a.announcements.spare(), 2);
}

TEST_F(Demand, EachPhaseOfACycleHasItsOwnLength) {
  for (int i = 0; i < 20; ++i) {
    event::IoPhase phase;
    phase.start = after_1_s(10 * i + (i % 2 ? -7.9 : 0));
    phase.io = from_s(i % 2 ? 0.1 : 2);
    phase.end = phase.start + phase.io;
    (i % 2 ? phase.bytes_read : phase.bytes_written) = 100;
    phase.target = "disk";
    a.add_phase(phase, phase.end);
  }
  target.name = "disk";
  begin(a, 0, 200);
  EXPECT_NEAR(work_of(a, target).alone_s, 2, 1e-6);
  begin(a, 0, 202.1);
  EXPECT_NEAR(work_of(a, target).alone_s, 0.1, 1e-6) << "nearer to when it reads";
}

TEST_F(Demand, OfTwoAtOnceEachIsSlower) {
  a.io.phase_s = b.io.phase_s = 10;
  begin(a, 0, 0);
  begin(b, 0, 4);
  count_progress(target, after_1_s(6), 2);
  EXPECT_NEAR(work_of(a, target).left_s, 10 - 4 - 1, 1e-9);
  EXPECT_NEAR(work_of(b, target).left_s, 10 - 1, 1e-9);
}

// A phase takes 10 s alone for 1000 bytes; then it is 1.4 times as slow beside another one.
TEST_F(Demand, InterferenceIsLearntFromPhasesThatMet) {
  begin(a, 0, 0);
  end(a, 10, 1000, 10);
  EXPECT_NEAR(a.io.bytes_per_s, 100, 1e-9);
  EXPECT_NEAR(record.phase_s, 10, 1e-9);
  EXPECT_EQ(record.interference, 0);
  EXPECT_EQ(slowness_of(a, target, 2).interference, 2);
  // The phase has 5 s alone, then 7 s beside b, which would have taken 5 s alone.
  begin(a, 0, 20);
  begin(b, 0, 25);
  end(a, 12, 1000, 32);
  EXPECT_NEAR(a.io.interference, 1.4, 1e-6);
  EXPECT_NEAR(slowness_of(a, target, 2).interference, 1.4, 1e-6);
  EXPECT_NEAR(slowness_of(b, target, 2).interference, 1.4, 1e-6) << "of the target";
}

// Application a demands all that the target can bear, b and c 0.3 of it each.
TEST_F(Demand, WhoseRateIsLowLeavesRoomForOthers) {
  EXPECT_EQ(demanded_by(a, target), 1) << "nothing is known";
  alone_first();
  EXPECT_DOUBLE_EQ(demanded_by(a, target), 1);
  EXPECT_DOUBLE_EQ(demanded_by(b, target), 0.3);
  begin(b, 300, 20);
  begin(c, 300, 20);
  count_progress(target, after_1_s(24), 2);
  EXPECT_NEAR(work_of(b, target).left_s, 6, 1e-9) << "as if it were alone";
  begin(a, 1000, 24);
  count_progress(target, after_1_s(27.2), 2);
  EXPECT_NEAR(work_of(a, target).left_s, 8, 1e-9) << "1.6 times as slow";
}

// Small accesses keep a target busy at a low rate: b takes twice as long beside c.
TEST_F(Demand, WhoBecomesSlowerThanTheRatesExplainIsDisturbed) {
  alone_first();
  const auto together = [&](double io_s, double now_s) {
    begin(c, 300, now_s);
    begin(b, 300, now_s);
    end(b, io_s, 300, now_s + io_s);
    end(c, io_s, 300, now_s + io_s);
  };
  together(20, 100);
  EXPECT_NEAR(slowness_of(b, target, 2).disturbance, 0.5, 1e-9) << "half of it is believed";
  EXPECT_EQ(slowness_of(a, target, 2).disturbance, 0.75) << "as the others on the target: b and c";
  for (int i = 1; i < 6; ++i) together(20, 100 + 50 * i);
  EXPECT_NEAR(slowness_of(b, target, 2).disturbance, 1, 1.0 / 16);
  EXPECT_EQ(b.io.interference, 0) << "nobody demanded more than the target can bear";
  for (int i = 6; i < 16; ++i) together(10, 100 + 50 * i);
  EXPECT_EQ(slowness_of(b, target, 2).disturbance, 0) << "that is over";
}

TEST_F(Demand, ADisturbanceThatKeepsThemApartIsForgotten) {
  alone_first();
  a.io.disturbance = b.io.disturbance = record.disturbance = 3;
  for (int i = 0; i < 80; ++i) {
    begin(b, 300, 100 + 50 * i);
    end(b, 10, 300, 110 + 50 * i);
  }
  EXPECT_LT(slowness_of(b, target, 2).disturbance, 0.1);
  EXPECT_EQ(slowness_of(c, target, 2).disturbance, slowness_of(b, target, 2).disturbance) << "c knows only the target";
  EXPECT_EQ(slowness_of(a, target, 2).disturbance, 3) << "had no phase since";
}

// The application that demands all also learns what a small one beside it costs.
TEST_F(Demand, ALargeOneIsDisturbedByASmallOne) {
  alone_first();
  for (int i = 0; i < 6; ++i) {
    begin(b, 300, 100 + 50 * i);
    begin(a, 1000, 100 + 50 * i);
    end(a, 20, 1000, 120 + 50 * i);
    end(b, 20, 300, 120 + 50 * i);
  }
  const Slowness slowness = slowness_of(a, target, 2);
  EXPECT_NEAR(model::slowdown(slowness, {2, 1.3}), 2, 0.1);
}

// Times that vary by a tenth are no disturbance.
TEST_F(Demand, NoiseIsNoDisturbance) {
  alone_first();
  std::mt19937_64 random{5};
  std::normal_distribution<double> varied{10, 1};
  for (int i = 0; i < 500; ++i) {
    const double now_s = 100 + 50 * i;
    const double io_s = std::clamp(varied(random), 7.0, 13.0);
    begin(b, 300, now_s);
    begin(c, 300, now_s + io_s * static_cast<double>(random() % 80) / 100);
    end(b, io_s, 300, now_s + io_s);
    end(c, io_s, 300, now_s + 20);
    EXPECT_LE(slowness_of(b, target, 2).disturbance, 0.25) << i;
  }
}

TEST_F(Demand, TheGreatestRateIsThatOfTheTargetLately) {
  alone_first();
  begin(b, 0, 100);
  end(b, 1, 30'000, 101);
  const double cached = record.most_bytes_per_s;
  EXPECT_GT(cached, 1000);
  for (int i = 0; i < 400; ++i) {
    begin(a, 1000, 200 + 50 * i);
    end(a, 10, 1000, 210 + 50 * i);
  }
  EXPECT_NEAR(record.most_bytes_per_s, 100, 10);
  TargetRecord other;
  learn_on(other, a, 10, 20);
  EXPECT_EQ(other.most_bytes_per_s, 2) << "not what it does elsewhere";
  EXPECT_EQ(demanded_by(a, target), 1) << "its rate is not of this target now";
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
