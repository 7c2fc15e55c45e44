// Measures the speed of the simulator: 1,000 applications with 1,000 I/O phases each, on one target that is in use
// half of the time, without a policy and with first-come-first-served through the real coordinator. It also measures
// one decision of phase-shift among 500 applications: the CPU time of the coordinator's answer to an IO_PHASE.
//
// Times are CPU times of the thread. The reference of a run is the same run without a policy. The reference of the
// decisions is the median of all other events.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "figures.hpp"
#include "policy/combination.hpp"
#include "sim/simulation.hpp"
#include "trace/reader.hpp"

namespace {

using namespace hocket;
using bench::cpu_s;
using bench::median;

// Prints a result whose bound is an upper one.
bool at_most(const std::string& name, double value, const char* unit, double reference, double bound) {
  return bench::print("simulator", {name, value, unit, reference, bound, value <= bound});
}

// Returns a scenario in which each application writes for 0.1 s alone. The periods are 150 to 250 s and vary by 5 %.
sim::Scenario scenario_of(std::size_t applications, std::int64_t phases, bool malleable) {
  sim::Scenario scenario;
  scenario.name = "benchmark";
  scenario.nodes = 1000;
  scenario.cores_per_node = 100;
  scenario.targets = {{"disk", 1e9, 1, sim::BandwidthSharing::fair}};
  for (std::size_t i = 0; i < applications; ++i) {
    sim::ApplicationSpec spec;
    spec.name = "a" + std::to_string(i);
    spec.target = "disk";
    spec.processes = 64;
    spec.malleable = malleable;
    spec.iterations = 100 * phases;
    spec.iterations_per_phase = 100;
    const double period_s = 150 + 100 * static_cast<double>(i) / static_cast<double>(applications);
    // The multiplier spreads the starts over the period without a pattern.
    spec.start_s = period_s * static_cast<double>(i * 7919 % applications) / static_cast<double>(applications);
    for (const std::int64_t size : {32, 64, 128, 256}) {
      model::CurvePoint point;
      point.processes = size;
      point.iteration_s = period_s / 100 * 64 / static_cast<double>(size);
      if (!spec.curve.add(point)) std::abort();
    }
    spec.io_bytes = 0.1e9;
    spec.jitter = 0.05;
    scenario.applications.push_back(std::move(spec));
  }
  return scenario;
}

coordinator::CoordinatorSettings settings_of(const std::string& policies) {
  coordinator::CoordinatorSettings settings{};
  settings.policy = policy::parse_combination(policies).value();
  settings.lease = std::chrono::seconds{10};
  settings.linger = std::chrono::milliseconds{20};
  settings.turn = std::chrono::minutes{1};
  settings.keep_alive = std::chrono::seconds{1};
  settings.cores = 100'000;
  return settings;
}

// Returns the CPU seconds of one run; no policies means no coordinator.
double run(const sim::Scenario& scenario, const std::string& policies) {
  std::unique_ptr<sim::Controller> controller;
  if (!policies.empty()) controller = std::make_unique<sim::Controller>(settings_of(policies));
  const double start = cpu_s();
  sim::Simulation{scenario, std::move(controller)}.run();
  return cpu_s() - start;
}

// Measures whole runs, interleaved. Returns true if the bounds hold.
bool runs() {
  const sim::Scenario scenario = scenario_of(1000, 1000, false);
  std::vector<double> without;
  std::vector<double> with;
  for (int i = 0; i < 5; ++i) {
    without.push_back(run(scenario, ""));
    with.push_back(run(scenario, "fcfs"));
  }
  const bool first = at_most("1000 applications x 1000 phases, no policy", median(without), "s", median(without), 1);
  return at_most("1000 applications x 1000 phases, fcfs", median(with), "s", median(without), 4) && first;
}

// Records the events that a simulation of 500 applications sends, and sends them to another coordinator one by one.
// So each decision is timed alone.
bool decisions() {
  const sim::Scenario scenario = scenario_of(500, 12, true);
  const coordinator::CoordinatorSettings settings = settings_of("phase-shift");
  const std::string path = "/tmp/hocket-bench-" + std::to_string(getpid()) + ".jsonl";
  auto controller = std::make_unique<sim::Controller>(settings);
  if (!controller->open_trace(path, {})) return false;
  sim::Simulation{scenario, std::move(controller)}.run();

  coordinator::Coordinator coordinator{settings};
  std::vector<double> asked;
  std::vector<double> other;
  auto reader = trace::Reader::open(path);
  // Events only: the commands in the trace are those of the first coordinator.
  while (reader) {
    const auto record = reader.value().next();
    if (!record || !record.value()) break;
    if (record.value()->direction == trace::Direction::out) continue;
    const double start = cpu_s();
    coordinator.handle(record.value()->event);
    const double us = (cpu_s() - start) * 1e6;
    (std::holds_alternative<event::IoPhase>(record.value()->event.body) ? asked : other).push_back(us);
  }
  std::remove(path.c_str());
  if (asked.empty()) return false;
  const double reference = median(other);
  const double worst = *std::max_element(asked.begin(), asked.end());
  const bool usual = at_most("decision of phase-shift, 500 applications, median", median(asked), "us", reference, 1000);
  return at_most("decision of phase-shift, 500 applications, worst", worst, "us", reference, 5000) && usual;
}

}  // namespace

int main() {
  const bool fast = runs();
  return decisions() && fast ? 0 : 1;
}
