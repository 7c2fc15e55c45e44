#include "model/application.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hocket::model {
namespace {

Application malleable(std::int64_t processes) {
  Application application;
  application.malleability.malleable = true;
  application.malleability.processes = processes;
  return application;
}

// Reports a phase of `io` seconds at `start`, which ends a period of 100 iterations.
void report(Application& application, double start, std::int64_t iteration, std::int64_t processes, double io = 2) {
  event::IoPhase phase;
  phase.start = Time{} + from_s(start);
  phase.end = phase.start + from_s(io);
  phase.io = from_s(io);
  phase.iteration = iteration;
  phase.processes = processes;
  phase.control_every = 10;
  phase.flop = 5e9;
  application.add_phase(phase, phase.end);
}

TEST(Application, SeesItsOwnSpeedupCurve) {
  Application application = malleable(64);
  report(application, 0, 100, 64);
  EXPECT_TRUE(application.curve.empty());
  report(application, 20, 200, 64);
  report(application, 40, 300, 64);
  ASSERT_EQ(application.curve.points().size(), 1u);
  EXPECT_DOUBLE_EQ(application.curve.iteration(64).value, 0.18);
  EXPECT_DOUBLE_EQ(application.curve.io(64).value, 2);
  EXPECT_EQ(application.curve.points()[0].samples, 2);
  EXPECT_EQ(application.malleability.iteration, 300);
  EXPECT_EQ(application.malleability.control_every, 10);
  EXPECT_EQ(application.flop_per_iteration, 5e7);

  application.malleability.processes = 128;
  ++application.malleability.reconfigurations;
  report(application, 55, 400, 128, 1);
  EXPECT_EQ(application.curve.points().size(), 1u) << "not the whole period was at 128";
  report(application, 66, 500, 128, 1);
  ASSERT_EQ(application.curve.points().size(), 2u);
  EXPECT_DOUBLE_EQ(application.curve.iteration(128).value, 0.1);
}

// Four processes compute; the reporting one communicates least.
TEST(Application, TakesTheMeanOfAllProcessesThatToldIt) {
  Application application = malleable(4);
  Member member;
  member.last_phase = 0;
  application.members.push_back(&member);
  for (std::int64_t i = 1; i <= 4; ++i) {
    event::IoPhase phase;
    phase.start = Time{} + from_s(20.0 * static_cast<double>(i));
    phase.end = phase.start + from_s(2);
    phase.io = from_s(2);
    phase.cpu = from_s(17);
    phase.comm = from_s(1);
    phase.iteration = 100 * i;
    phase.processes = 4;
    phase.told_processes = 4;
    phase.all_cpu = from_s(4 * 12.0 * static_cast<double>(i));
    phase.all_comm = from_s(4 * 6.0 * static_cast<double>(i));
    phase.cpu_most = from_s(17.0 * static_cast<double>(i));
    phase.comm_most = from_s(9.0 * static_cast<double>(i));
    application.add_phase(phase, phase.end, &member);
  }
  const SpentTimes spent = application.spent();
  EXPECT_EQ(spent.processes, 4);
  EXPECT_EQ(spent.cpu / spent.processes, from_s(48));
  EXPECT_EQ(spent.comm / spent.processes, from_s(24));
  EXPECT_EQ(spent.cpu_most, from_s(68));
  EXPECT_EQ(spent.comm_most, from_s(36));
  EXPECT_EQ(application.history.period_parts().comm, from_s(6));
  EXPECT_EQ(application.history.period_parts().cpu, from_s(12));
  EXPECT_DOUBLE_EQ(application.curve.comm(4).value, 0.06);
  EXPECT_DOUBLE_EQ(application.curve.cpu(4).value, 0.12);

  event::IoPhase wrong;
  wrong.index = 5;
  wrong.start = wrong.end = Time{} + from_s(102);
  wrong.told_processes = std::numeric_limits<std::int64_t>::max();
  wrong.all_cpu = wrong.all_comm = wrong.cpu_most = Duration::max();
  wrong.comm_most = Duration::min();
  application.add_phase(wrong, wrong.end, &member);
  EXPECT_LE(application.spent().cpu_most, from_s(102)) << "since the node was started";
  EXPECT_EQ(application.spent().comm, Duration{});
}

TEST(Application, DoesNotCountAPeriodInWhichItGrewAndShrank) {
  Application application = malleable(64);
  report(application, 0, 100, 64);
  report(application, 20, 200, 64);
  application.malleability.reconfigurations += 2;
  report(application, 35, 300, 64);
  EXPECT_EQ(application.history.period().mean, from_s(20));
  report(application, 55, 400, 64);
  EXPECT_EQ(application.history.period().mean, from_s(20));
  EXPECT_EQ(application.history.present().periods, 2u);
}

void iterate(Application& application, std::int64_t iteration, double iteration_s, std::int64_t processes) {
  event::Iterations said;
  said.iteration = iteration;
  said.iterations = 10;
  said.processes = processes;
  said.elapsed = from_s(10 * iteration_s);
  said.cpu = from_s(8 * iteration_s);
  said.comm = from_s(2 * iteration_s);
  application.add_iterations(said);
}

TEST(Application, SeesItsCurveInIterationsWhereItDoesNoIo) {
  Application application = malleable(4);
  iterate(application, 10, 9, 4);
  EXPECT_TRUE(application.curve.empty()) << "caches are cold";
  iterate(application, 20, 0.1, 4);
  iterate(application, 30, 0.1, 4);
  ASSERT_EQ(application.curve.points().size(), 1u);
  EXPECT_NEAR(application.curve.iteration(4).value, 0.1, 1e-9);
  EXPECT_EQ(application.curve.points()[0].samples, 2);
  EXPECT_EQ(application.malleability.iteration, 30);
  iterate(application, 40, 0.07, 8);
  EXPECT_EQ(application.curve.points().size(), 1u) << "it has not told that it has that size";
  application.malleability.processes = 8;
  for (int i = 0; i < 4; ++i) iterate(application, 50 + 10 * i, 0.06, 8);
  EXPECT_NEAR(application.curve.iteration(8).value, 0.06, 1e-9);
}

TEST(Application, WholePeriodsCountBeforeReportsOfIterations) {
  Application application = malleable(64);
  report(application, 0, 100, 64);
  report(application, 20, 200, 64);
  for (int i = 0; i < 5; ++i) iterate(application, 210 + 10 * i, 1, 64);
  EXPECT_DOUBLE_EQ(application.curve.iteration(64).value, 0.18);
}

TEST(Application, BearsAnyReportOfIterations) {
  Application application = malleable(4);
  constexpr std::int64_t extremes[] = {INT64_MIN, -1, 0, 1, 4, INT64_MAX};
  for (int i = 0; i < 6 * 6 * 6 * 6; ++i) {
    event::Iterations said;
    said.iteration = extremes[i % 6];
    said.iterations = extremes[i / 6 % 6];
    said.processes = extremes[(i + 4) % 6];
    said.elapsed = said.comm = Duration{extremes[i / 36 % 6]};
    said.cpu = Duration{extremes[i / 216 % 6]};
    application.add_iterations(said);
    for (const CurvePoint& point : application.curve.points()) EXPECT_TRUE(std::isfinite(point.iteration_s));
    EXPECT_LE(application.malleability.iteration, std::int64_t{1} << 53);
  }
}

TEST(Application, LeavesAProfileAsItIs) {
  Application application = malleable(64);
  ASSERT_TRUE(application.curve.add({64, 1.0, 0, 5, 0, 3}).ok());
  for (int i = 0; i < 4; ++i) report(application, 20 * i, 100 * (i + 1), 64);
  EXPECT_DOUBLE_EQ(application.curve.iteration(64).value, 1);
  EXPECT_FALSE(application.curve_is_seen);
}

TEST(Application, BelievesTheBestSourceOfItsFlop) {
  Application application = malleable(64);
  EXPECT_EQ(name_of(application.flop_source), "");
  application.learn_flop(1e7, FlopSource::profile);
  EXPECT_EQ(application.flop_source, FlopSource::profile);
  application.learn_flop(2e7, FlopSource::declared);
  EXPECT_EQ(application.flop_per_iteration, 2e7);
  application.learn_flop(1e7, FlopSource::profile);
  EXPECT_EQ(application.flop_per_iteration, 2e7) << "what an earlier run did is older";
  application.learn_flop(3e7, FlopSource::declared);
  EXPECT_EQ(application.flop_per_iteration, 3e7) << "its latest word holds";

  report(application, 0, 100, 64);
  EXPECT_EQ(application.flop_source, FlopSource::declared) << "in how many iterations is not known yet";
  report(application, 20, 200, 64);  // 5e9 FLOP in 100 iterations
  EXPECT_EQ(application.flop_per_iteration, 5e7);
  EXPECT_EQ(name_of(application.flop_source), "counters");
  application.learn_flop(3e7, FlopSource::declared);
  EXPECT_EQ(application.flop_per_iteration, 5e7) << "what was counted goes before what is said";
}

TEST(Application, TakesNothingForFlopThatIsNoNumberOfThem) {
  for (const double no : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (const FlopSource source : {FlopSource::profile, FlopSource::declared, FlopSource::counters}) {
      Application application;
      application.learn_flop(no, source);
      EXPECT_EQ(application.flop_per_iteration, 0);
      EXPECT_EQ(application.flop_source, FlopSource::unknown);
    }
}

TEST(Application, BearsAnyReport) {
  Application application = malleable(4);
  constexpr std::int64_t extremes[] = {INT64_MIN, -1, 0, 1, 7, INT64_MAX};
  const double flops[] = {-1, 0, 1e300, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()};
  for (int i = 0; i < 400; ++i) {
    event::IoPhase phase;
    phase.start = time_from_ns(1000 * i);
    phase.end = time_from_ns(1000 * i + 500);
    phase.io = Duration{extremes[i % 6]};
    phase.iteration = extremes[i / 2 % 6];
    phase.processes = extremes[i / 3 % 6];
    phase.control_every = extremes[i / 5 % 6];
    phase.flop = flops[i % 5];
    application.add_phase(phase, phase.end);
    EXPECT_GE(application.history.present().iterations, 0);
    EXPECT_TRUE(std::isfinite(application.flop_per_iteration));
    EXPECT_LE(application.history.present().processes, most_processes);
  }
}

}  // namespace
}  // namespace hocket::model
