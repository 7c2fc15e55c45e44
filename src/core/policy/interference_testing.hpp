// Test support for the policies against interference: a machine with two or more applications that have shown I/O
// phases. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "policy/phase_shift.hpp"

namespace hocket::policy::testing {

using model::Application;

inline Time at(double seconds) { return Time{} + from_s(10'000 + seconds); }

class Interference : public ::testing::Test {
 protected:
  Interference() { settings.uncertainty = from_s(2); }

  // Adds an application that scales perfectly up to 4096 processes and has an I/O phase every 100 iterations. Its last
  // phase starts at `last`. Times are in seconds.
  Application& application(const std::string& name, std::int64_t processes, double period, double io, double last) {
    const MemberId id{++members};
    const event::Hello hello{"job-" + name, name, "/bin/a", "mpich", "0.1", 1, processes};
    Application& app = *cluster.join({"n1", "", id}, hello, Time{}).application;
    app.target = "fs";
    app.malleability.malleable = true;
    app.malleability.commanding = id;
    app.malleability.processes = processes;
    cores.claim(app.id, processes, "n1");
    const double one = (period - io) / 100 * static_cast<double>(processes);
    EXPECT_TRUE(app.curve.add({1, one, 0, io, 0, 1}).ok());
    EXPECT_TRUE(app.curve.add({4096, one / 4096, 0, io, 0, 1}).ok());
    for (int i = 3; i >= 0; --i) report(app, last - i * period, io);
    return app;
  }
  static void report(Application& app, double start, double io, double wait = 0) {
    event::IoPhase phase;
    phase.start = at(start);
    phase.end = at(start + wait + io);
    phase.io = from_s(io);
    phase.wait = from_s(wait);
    phase.iteration = app.malleability.iteration + 100;
    phase.processes = app.malleability.processes;
    phase.control_every = 1;
    app.add_phase(phase, phase.end);
  }
  CoreDecision decide(const CorePolicy& policy, const Application& subject, double now) const {
    return policy.decide({cluster, cores, settings, at(now)}, event::Event{at(now), {}, event::IoPhase{}}, subject.id);
  }
  // Carries the change out as the coordinator does.
  void carry_out(const CoreChange& change) {
    Application& app = *cluster.find(change.application);
    const std::int64_t before = app.malleability.processes;
    if (change.processes > before) {
      ASSERT_TRUE(cores.allocate(app.id, change.processes - before));
    } else {
      cores.release(app.id, before - change.processes);
    }
    if (app.expansion.decision == 0 || change.return_at_iteration != 0) {
      const auto pace = model::pace(app, before);
      app.expansion.original = before;
      app.expansion.original_period_s = pace ? pace->period_s() : 0;
    }
    app.expansion.decision = ++decisions;
    app.expansion.policy = period_coupling.name;
    app.expansion.return_at_iteration = change.return_at_iteration;
    app.expansion.start_after = change.start_after;
    app.expansion.because_of = change.because_of;
    app.malleability.processes = change.processes;
    ++app.malleability.reconfigurations;
  }
  // Returns the obstacle of the conflict that was left alone, which must be of that kind.
  template <class Obstacle>
  static Obstacle obstacle(const CoreDecision& decision) {
    EXPECT_TRUE(decision.changes.empty());
    const event::Reason found = decision.left_alone.empty() ? event::Reason{} : decision.left_alone.front().obstacle;
    const auto* expected = std::get_if<Obstacle>(&found);
    EXPECT_NE(expected, nullptr) << "alternative " << found.index();
    return expected == nullptr ? Obstacle{} : *expected;
  }
  // Returns the reason of a change, which must be of that kind.
  template <class Reason>
  static Reason reason(const CoreChange& change) {
    const auto* expected = std::get_if<Reason>(&change.reason);
    EXPECT_NE(expected, nullptr) << "alternative " << change.reason.index();
    return expected == nullptr ? Reason{} : *expected;
  }

  model::Cluster cluster;
  model::Cores cores{{{"n1", 1024}}};
  CoreSettings settings;
  std::uint64_t members = 0;
  std::int64_t decisions = 0;
};

}  // namespace hocket::policy::testing
