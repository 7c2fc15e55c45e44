// Helpers for the tests that run simulations: a scenario with one disk, and settings of the coordinator.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/simulation.hpp"

namespace hocket::sim::testing {

// A disk with 1000 B/s, which transfers share evenly, and a node with 64 cores.
inline Scenario scenario_of(std::vector<ApplicationSpec> applications) {
  Scenario scenario;
  scenario.name = "test";
  scenario.cores_per_node = 64;
  scenario.targets = {{"disk", 1000, 1, BandwidthSharing::fair}};
  scenario.applications = std::move(applications);
  return scenario;
}

// A lease of 10 s, a time slice of 1 min, and a reminder each second.
inline coordinator::CoordinatorSettings settings_of(const policy::Policy& access, std::int64_t cores = 64) {
  coordinator::CoordinatorSettings settings{};
  settings.policy.access = &access;
  settings.lease = std::chrono::seconds{10};
  settings.turn = std::chrono::minutes{1};
  settings.keep_alive = std::chrono::seconds{1};
  settings.cores = cores;
  return settings;
}

}  // namespace hocket::sim::testing
