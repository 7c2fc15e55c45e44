// Test support for the sharing policies: a machine with applications whose times are known, and the four applications
// of Table 2 (CLARISSE+FlexMPI). Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "policy/sharing.hpp"

namespace hocket::policy::testing {

// An application with known times, as functions of its number of processes.
struct Known {
  std::string name;
  std::int64_t processes = 0;
  std::function<double(std::int64_t)> compute_s;  // of a period
  std::function<double(std::int64_t)> io_s;
  double flop = 0;  // of a period
  std::string target = "gpfs";
};

constexpr std::int64_t iterations = 100;  // in one period

// Returns Jacobi with the times of Table 2, as scenarios/table2-36.toml derives them.
inline Known table2(const std::string& name, std::int64_t processes, double rows, double compute_s, double io_s) {
  const auto shape = [rows](double p) { return 1.1572e-6 * rows * rows / p + 0.24 * std::log2(p); };
  const double scale = compute_s / shape(static_cast<double>(processes));
  const auto compute = [=](std::int64_t p) { return scale * shape(static_cast<double>(p)); };
  const auto io = [=](std::int64_t p) {
    return io_s / std::min(4.0, static_cast<double>(p) / static_cast<double>(processes));
  };
  return {name, processes, compute, io, scale * 2 * rows * rows};
}
inline std::vector<Known> table2() {
  return {table2("A1", 6, 20000, 77.7, 2.9), table2("A2", 8, 17000, 42.6, 5.2), table2("A3", 8, 7000, 24.7, 1.6),
          table2("A4", 6, 18000, 63.3, 7.8)};
}

// A machine that runs these applications. Each has shown four I/O phases at its initial size.
class Machine {
 public:
  Machine(const std::vector<Known>& applications, std::int64_t cores) : cores_{{{"node1", cores}}} {
    for (const Known& known : applications) add(known);
  }

  AppId add(const Known& known) {
    model::Application& application = announce(known);
    show(application, known);
    return application.id;
  }

  // Adds an application of which only its size is known, and that it is malleable.
  model::Application& announce(const Known& known) {
    const MemberId id{++members_};
    event::Hello hello;
    hello.application = known.name;
    hello.processes = known.processes;
    model::Application& application = *cluster.join({"node1", "", id}, hello, now).application;
    application.malleability.malleable = true;
    application.malleability.commanding = id;
    application.malleability.processes = known.processes;
    application.target = known.target;
    application.flop_per_iteration = known.flop / iterations;
    cores_.claim(application.id, known.processes, "node1");
    return application;
  }

  void show(model::Application& application, const Known& known) {
    const auto measure = [&](std::int64_t processes) {
      model::CurvePoint point;
      point.processes = processes;
      point.iteration_s = known.compute_s(processes) / iterations;
      point.io_s = known.io_s(processes);
      ASSERT_TRUE(application.curve.add(point).ok());
    };
    measure(4 * known.processes);  // where Table 2's file system is saturated
    for (std::int64_t p = known.processes; p < 100000; p = (p * 6 + 4) / 5) measure(p);
    Time start = now;
    for (int phase = 0; phase < 4; ++phase) {
      event::IoPhase done;
      done.index = phase;
      done.start = start += from_s(known.compute_s(known.processes));
      done.end = start += from_s(known.io_s(known.processes));
      done.io = done.end - done.start;
      done.cpu = from_s(known.compute_s(known.processes));
      done.iteration = (phase + 1) * iterations;
      done.processes = known.processes;
      done.control_every = 1;
      done.target = known.target;
      application.add_phase(done, done.end);
    }
    now = std::max(now, start);
  }

  CoreDecision ask(const CorePolicy& policy) {
    return policy.decide({cluster, cores_, settings, now, 0, most_slowdown}, {now, {}, event::SetPolicy{}}, {});
  }

  // Carries out the policy's decisions until it decides nothing more. Fails after ten rounds.
  void run(const CorePolicy& policy) {
    for (int round = 0; round < 10; ++round) {
      const CoreDecision decision = ask(policy);
      if (decision.changes.empty()) return;
      for (const CoreChange& change : decision.changes) resize(policy, change);
    }
    ADD_FAILURE() << policy.name << " does not come to rest";
  }

  void resize(const CorePolicy& policy, const CoreChange& change) {
    model::Application& application = *cluster.find(change.application);
    const std::int64_t more = change.processes - application.malleability.processes;
    ASSERT_NE(more, 0) << application.name;
    if (application.expansion.decision == 0) application.expansion.original = application.malleability.processes;
    application.expansion.decision = ++decisions_;
    application.expansion.policy = policy.name;
    ASSERT_GE(change.processes, application.expansion.original) << application.name;
    if (more > 0) {
      ASSERT_TRUE(cores_.allocate(application.id, more)) << application.name;
    } else {
      cores_.release(application.id, -more);
    }
    application.malleability.processes = change.processes;
    application.malleability.reconfigurations += 1;
  }

  void leave(AppId id) {
    cores_.release_all(id);
    cluster.leave(*cluster.find(id)->members.front());
  }

  Sizes sizes() const {
    Sizes sizes;
    for (const auto& [id, application] : cluster.applications()) sizes.push_back(application.malleability.processes);
    return sizes;
  }
  std::int64_t free() const { return cores_.free(); }

  model::Cluster cluster;
  CoreSettings settings;
  double most_slowdown = 0;
  Time now{};

 private:
  model::Cores cores_;
  std::uint64_t members_ = 0;
  std::int64_t decisions_ = 0;
};

// Returns the allocation that the policy gives the applications of Table 2 on that many cores.
inline Sizes allocation(const CorePolicy& policy, std::int64_t cores) {
  Machine machine{table2(), cores};
  machine.run(policy);
  return machine.sizes();
}

}  // namespace hocket::policy::testing
