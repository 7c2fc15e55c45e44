// What a simulated run came to. Times in seconds of simulated time, from its start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hocket::sim {

struct ApplicationResult {
  std::string name;
  std::int64_t processes_first = 0;
  std::int64_t processes_last = 0;
  double start_s = 0;
  double end_s = 0;    // of the simulation, where it was cut off
  double alone_s = 0;  // what it did, without others and with its first processes
  double compute_s = 0;
  double io_s = 0;                 // without waits
  double io_alone_s = 0;           // as alone_s
  double wait_s = 0;               // for grants: the delay, pauses included
  double paused_s = 0;             // the part of it in the middle of phases
  std::int64_t interruptions = 0;  // within a phase: in the middle of an operation, or before its next one
  double stopped_s = 0;            // in reconfigurations
  std::int64_t phases = 0;
  std::int64_t operations = 0;
  std::int64_t iterations = 0;
  double flop = 0;
  std::int64_t reconfigurations = 0;  // done
  double bytes_read = 0;
  double bytes_written = 0;

  double total_s() const { return end_s - start_s; }
};

struct TargetResult {
  std::string name;
  double busy_s = 0;
  double overlap_s = 0;  // with two applications or more
  double bytes = 0;
};

struct Report {
  std::string scenario;
  std::string policy;
  std::uint64_t seed = 0;
  double most_slowdown = 0;  // in force, see [coordinator]
  double simulated_s = 0;
  std::vector<ApplicationResult> applications;
  std::vector<TargetResult> targets;
  double flops = 0;  // sum over applications of flop per second of their time
  std::int64_t decisions = 0;
  std::int64_t events = 0;
  double wall_s = 0;  // of the machine that simulated
};

// One JSON object in one line, '\n' included.
std::string to_json(const Report& report);

}  // namespace hocket::sim
