#include "model/phase_cycle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "model/io_history.hpp"
#include "model/testing.hpp"

namespace hocket::model {
namespace {

using testing::at;

// One phase of a program, with the computing before it, in seconds.
struct Step {
  double computing = 0;
  double io = 0;
  std::int64_t written = 0;
  std::int64_t read = 0;
  std::string target = "scratch";
};
using Program = std::vector<Step>;

const Program write_read{{9, 1, 1000, 0}, {0.5, 0.05, 0, 1000}};
const Program two_file_systems{{5, 1, 1000, 0, "scratch"}, {5, 1, 1000, 0, "home"}};
const Program small_and_large{{10, 0.5, 100, 0}, {10, 0.5, 100, 0}, {10, 0.5, 100, 0}, {10, 5, 1000, 0}};

// Runs a program with faults: phases that are left out, and stops.
class Runner {
 public:
  explicit Runner(Program program, double jitter = 0, std::uint64_t seed = 1)
      : program_{std::move(program)}, jitter_{0, jitter}, random_{seed} {}

  void step(bool left_out = false) {
    const Step& step = program_[place_];
    const double factor = jitter_.stddev() > 0 ? std::clamp(1 + jitter_(random_), 0.1, 3.0) : 1;
    now_ += step.computing * factor;
    if (!left_out) {
      PhaseRecord record;
      record.start = at(now_);
      record.io = from_s(step.io);
      record.end = record.start + record.io;
      record.bytes = step.written + step.read;
      record.written = step.written;
      record.target = step.target;
      history.add(record);
    }
    now_ += step.io;
    place_ = (place_ + 1) % program_.size();
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) step();
  }
  void stop(double s) { now_ += s; }
  // Returns the next phase that the program will do.
  const Step& next() const { return program_[place_]; }
  Time next_start() const { return at(now_ + program_[place_].computing); }
  std::size_t length() const { return history.cycle_length(); }

  IoHistory history;

 private:
  Program program_;
  std::normal_distribution<double> jitter_;
  std::mt19937_64 random_;
  double now_ = 100;
  std::size_t place_ = 0;
};

void expect_next(const Runner& run, const std::string& what) {
  const auto phases = run.history.predict(run.history.last()->end, 1);
  ASSERT_EQ(phases.size(), 1u) << what;
  EXPECT_NEAR(to_s(phases[0].start - Time{}), to_s(run.next_start() - Time{}), 1e-3) << what;
  EXPECT_EQ(phases[0].bytes, run.next().written + run.next().read) << what;
  EXPECT_EQ(phases[0].target, run.next().target) << what;
  EXPECT_NEAR(to_s(phases[0].duration), run.next().io, 1e-6) << what;
  EXPECT_LT(to_s(phases[0].uncertainty), 1e-3) << what;
}

TEST(PhaseCycle, OfAProgramThatReadsBackHasTwoPhases) {
  Runner run{write_read};
  for (int i = 0; i < 60; ++i) {
    run.step();
    if (i < 7) continue;
    EXPECT_EQ(run.length(), 2u) << i;
    EXPECT_EQ(run.history.period().mean, from_s(10.55)) << i;
    EXPECT_EQ(run.history.duration().mean, from_s(1.05)) << i;
    EXPECT_NEAR(run.history.io_ratio(), 1.05 / 10.55, 1e-9) << i;
    expect_next(run, std::to_string(i));
  }
}

TEST(PhaseCycle, OfAlternatingFileSystemsHasTwoPhases) {
  Runner run{two_file_systems};
  run.steps(20);
  EXPECT_EQ(run.length(), 2u);
  EXPECT_EQ(run.history.period().mean, from_s(12));
  for (int i = 0; i < 4; ++i, run.step()) expect_next(run, std::to_string(i));
}

TEST(PhaseCycle, OfALargeCheckpointAfterThreeSmallOnesHasFour) {
  Runner run{small_and_large};
  run.steps(30);
  EXPECT_EQ(run.length(), 4u);
  EXPECT_EQ(run.history.period().mean, from_s(46.5));
  for (int i = 0; i < 8; ++i, run.step()) expect_next(run, std::to_string(i));
}

TEST(PhaseCycle, PredictsItsPhasesInOrder) {
  Runner run{write_read};
  run.steps(20);  // the last phase has read
  const auto phases = run.history.predict(run.history.last()->end, 5);
  const Time end = run.history.last()->end;
  ASSERT_EQ(phases.size(), 5u);
  const double starts[] = {9, 10.5, 19.55, 21.05, 30.1};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(to_s(phases[i].start - end), starts[i], 1e-6) << i;
    EXPECT_EQ(phases[i].duration, from_s(i % 2 ? 0.05 : 1)) << i;
  }
}

TEST(PhaseCycle, SaysWhatThePhaseUnderWayIs) {
  Runner run{two_file_systems};
  run.steps(20);
  ASSERT_NE(run.history.due(), nullptr);
  EXPECT_EQ(run.history.due()->target, "scratch");
  EXPECT_EQ(run.history.due("home")->target, "home");
  Runner reading{write_read};
  reading.steps(20);
  EXPECT_EQ(reading.history.due()->io.mean, from_s(1));
  EXPECT_EQ(reading.history.due("scratch", reading.next_start())->io.mean, from_s(1));
  const Time left_out = reading.next_start() + from_s(1.5);
  EXPECT_EQ(reading.history.due("scratch", left_out)->io.mean, from_s(0.05)) << "it reads without having written";
  const auto upcoming = reading.history.upcoming();
  ASSERT_TRUE(upcoming);
  EXPECT_EQ(upcoming->start, reading.next_start());
  EXPECT_EQ(upcoming->bytes, 1000);
}

TEST(PhaseCycle, BearsPhasesThatAreLeftOut) {
  for (const Program& program : {write_read, two_file_systems, small_and_large}) {
    for (std::size_t missing = 0; missing < program.size(); ++missing) {
      Runner run{program};
      run.steps(24);
      for (std::size_t i = 0; i < program.size(); ++i) run.step(i == missing);
      for (int i = 0; i < 20; ++i) {
        run.step();
        EXPECT_EQ(run.length(), program.size()) << program.size() << " " << missing << " " << i;
        if (i >= static_cast<int>(program.size()))
          expect_next(run, std::to_string(program.size()) + " " + std::to_string(missing));
      }
    }
  }
}

TEST(PhaseCycle, BearsAStop) {
  Runner run{write_read};
  run.steps(20);
  run.stop(100);
  for (int i = 0; i < 20; ++i) {
    run.step();
    EXPECT_EQ(run.length(), 2u);
    expect_next(run, std::to_string(i));
  }
}

TEST(PhaseCycle, IsNotFoundWhereOnePhaseFitsAsWell) {
  int found = 0;
  for (const double jitter : {0.0, 0.01, 0.05, 0.1, 0.2, 0.4}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Runner run{{{10, 1, 1000, 0}}, jitter, seed};
      for (int i = 0; i < 64; ++i) {
        run.step(seed % 2 != 0 && i % 11 == 5);
        found += run.length() != 1;
      }
    }
  }
  EXPECT_LE(found, 6 * 40 * 64 / 100);
}

TEST(PhaseCycle, IsFoundThroughJitter) {
  int missed = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Runner run{write_read, 0.15, seed};
    run.steps(10);
    for (int i = 0; i < 40; ++i, run.step()) missed += run.length() != 2;
  }
  EXPECT_LE(missed, 50 * 40 / 100);
}

TEST(PhaseCycle, FollowsAProgramThatChanges) {
  Runner run{{{25, 1, 1000, 0}}};
  run.steps(32);
  Runner other{write_read};
  other.history = run.history;
  other.stop(1000);
  other.steps(20);
  EXPECT_EQ(other.length(), 2u);
  expect_next(other, "changed");
}

}  // namespace
}  // namespace hocket::model
