// The result of a simulation, and its JSON text. Times are seconds of simulated time since its start unless stated
// otherwise. Plain data; simulation.hpp fills it, and `hocket` tools read the JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hocket::sim {

// The result of one application: its times, and the work that it completed.
struct ApplicationResult {
  std::string name;
  std::int64_t processes_first = 0;
  std::int64_t processes_last = 0;
  double start_s = 0;       // after `cores_wait_s`
  double cores_wait_s = 0;  // wait for cores before the start
  double end_s = 0;         // the end of the simulation if that came first
  double alone_s = 0;       // time of the same work without other applications, at the first size
  double compute_s = 0;
  double io_s = 0;                 // without waits
  double io_alone_s = 0;           // I/O time of the same operations alone, at the first size
  double wait_s = 0;               // wait for grants (the delay), pauses included
  double paused_s = 0;             // part of wait_s that falls inside phases
  std::int64_t interruptions = 0;  // within a phase: in the middle of an operation, or before its next one
  double stopped_s = 0;            // stopped by reconfigurations
  std::int64_t phases = 0;
  std::int64_t operations = 0;
  std::int64_t iterations = 0;
  double flop = 0;
  std::int64_t reconfigurations = 0;  // successful ones only
  double bytes_read = 0;
  double bytes_written = 0;

  bool forwards = false;                      // the data of its files go through I/O servers
  std::map<std::int64_t, double> served_s{};  // seconds with each number of I/O servers

  double total_s() const { return end_s - start_s; }
  // Returns bytes per second over the whole run (GekkoFWD, section 5.1: bandwidth over the makespan).
  double bandwidth() const { return total_s() > 0 ? (bytes_read + bytes_written) / total_s() : 0; }
};

// The use of one storage target.
struct TargetResult {
  std::string name;
  // Time with at least one transfer.
  double busy_s = 0;
  double overlap_s = 0;  // time with at least two transfers
  double bytes = 0;
};

// All results of one simulation.
struct SimulationReport {
  std::string scenario;
  std::string policy;
  std::uint64_t seed = 0;
  double most_slowdown = 0;  // limit in force, see [coordinator]; 0: none
  double simulated_s = 0;
  std::vector<ApplicationResult> applications;
  std::vector<TargetResult> targets;
  double flops = 0;                // sum over the applications of flop divided by total time
  double forwarded_bandwidth = 0;  // sum over the applications that forward, in bytes/s (GekkoFWD, Equation 2)
  std::int64_t slow_servers = 0;   // how often an I/O server was found slow (SLOW_IO_SERVER)
  // DECISION events of the coordinator, and events that the simulator processed.
  std::int64_t decisions = 0;
  std::int64_t events = 0;
  double wall_s = 0;  // seconds of real time that the simulation took
};

// Returns one JSON object on one line, which ends with '\n'.
std::string to_json(const SimulationReport& report);

}  // namespace hocket::sim
