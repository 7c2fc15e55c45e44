// What is simulated: the machine, its storage, the applications. Read from TOML by scenario_reader.hpp, where each key
// is explained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/speedup_curve.hpp"
#include "sim/shared_bandwidth.hpp"

namespace hocket::sim {

struct TargetSpec {
  std::string name;
  double bandwidth = 0;     // bytes per second
  double interference = 1;  // shared_bandwidth.hpp has both
  Sharing sharing = Sharing::fair;
};

// What the application stands still for.
struct ReconfigurationCost {
  double fixed_s = 1;
  double per_process_s = 0;  // for each process started
  double bytes_per_s = 0;    // at which its data is redistributed; 0: takes no time
};

// What the coordinator is told of the times of an application when it begins.
enum class Profile {
  exact,
  none,   // it must be measured in the running application
  wrong,  // more processes than at the start are told to be 30 % faster than they are, fewer 30 % slower
};

// Where in an I/O operation the application can stop for another one. Between two operations it always can.
enum class Grain {
  round,      // after each round of a collective access, and where a file is full
  file,       // where a file is full
  operation,  // nowhere
};

// What the application announces of the bytes of an I/O phase with each operation (START_IO's phase_bytes). The bytes
// of the operation itself are always known.
enum class Announces {
  exact,
  nothing,
  wrong,  // the exact bytes times a factor that is drawn for the application: log-uniform, 0.3 to 3
};

// One of the I/O phases of a period.
struct PhaseSpec {
  double after = 1;     // the share of the period's iterations that are done before it
  double gap_s = 0;     // computing before it that belongs to no iteration
  double bytes = 0;     // of all processes
  bool reads = false;   // otherwise it writes
  bool cached = false;  // the page cache serves it: it does not load the target
  std::string target;   // of its files, also if it is cached
  std::size_t target_index = 0;
  std::int64_t operations = 1;  // of the same size
  double operation_gap_s = 0;   // computing between two of them
};

// Chances of what goes wrong, each drawn from the seed.
struct Troubles {
  double period_change = 0;   // at each period: its computing time is another from then on, half to twice the first one
  double phase_skip = 0;      // at each phase: it does no I/O
  double death = 0;           // at each period: the application dies within it
  double resize_refusal = 0;  // at each reconfiguration: given up at once
  double resize_failure = 0;  // at each reconfiguration: given up at its end
};

struct ApplicationSpec {
  std::string name;  // unique
  std::string program = "jacobi";
  std::string target;
  std::size_t target_index = 0;
  std::int64_t processes = 1;
  bool malleable = false;
  double start_s = 0;
  std::int64_t iterations = 0;
  std::int64_t iterations_per_phase = 0;
  std::int64_t control_every = 1;
  model::SpeedupCurve curve;      // iteration_s: seconds of one iteration
  model::SpeedupCurve io_curve;   // iteration_s: seconds of a phase alone; empty: as fast as the target is
  double io_bytes = 0;            // of a phase
  std::vector<PhaseSpec> phases;  // of a period, in their order; empty: one of io_bytes at its end
  std::int64_t files = 1;         // of an operation, of the same size, one after the other
  Grain grain = Grain::round;
  Announces announces = Announces::exact;
  double phase_gap_s = 0;          // HOCKET_PHASE_GAP: a phase is over so long after its last operation; 0: with it
  double gap_jitter = 0;           // relative standard deviation of each gap
  double cache_bytes_per_s = 5e9;  // at which the page cache serves cached phases
  std::int64_t writers = 0;        // processes that do the I/O: the weight at proportional targets; 0: all
  double round_bytes = 0;          // of a round; 0: small ones, so that it can stop at once
  double io_bandwidth = 0;         // most that it can use, bytes per second; 0: the target's
  double jitter = 0;               // relative standard deviation of each period's computing time
  double io_jitter = 0;            // the same of the bytes of each phase
  double flop_per_iteration = 0;
  double data_bytes = 0;  // to be redistributed
  Profile profile = Profile::exact;
  Troubles troubles;
};

struct Scenario {
  std::string name;
  std::uint64_t seed = 1;
  double until_s = 0;       // 0: until all applications have ended
  double max_wait_s = 600;  // HOCKET_MAX_WAIT_S of all applications
  std::int64_t nodes = 1;
  std::int64_t cores_per_node = 1;
  std::vector<TargetSpec> targets;
  ReconfigurationCost reconfiguration;
  std::vector<ApplicationSpec> applications;
};

}  // namespace hocket::sim
