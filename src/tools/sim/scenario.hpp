// Describes a simulation: the machine, its storage targets, and its applications. Plain data without behaviour.
// scenario_reader.hpp fills these structs from a TOML file and documents each key. The simulator only reads them, so
// one scenario can serve several simulations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "allocation/allocation.hpp"
#include "model/speedup_curve.hpp"
#include "sim/shared_bandwidth.hpp"

namespace hocket::sim {

// Load of an I/O server that the scenario injects: each request takes longer (CLARISSE, section V-B).
struct InjectedLoad {
  double from_s = 0;
  double to_s = 0;  // 0: until the end
  double delay_s = 0;
};

// An I/O server in front of a target. server_work.hpp says what an operation takes there.
struct ServerSpec {
  std::string name;                   // unique in the scenario
  double service_s = 0;               // of one request
  double bandwidth = 0;               // bytes per second; 0: no limit
  std::vector<InjectedLoad> loads{};  // those under way at the same time add up
};

// A storage resource that the applications contend for. shared_bandwidth.hpp explains bandwidth, interference and
// sharing.
struct TargetSpec {
  std::string name;
  double bandwidth = 0;     // bytes per second
  double interference = 1;  // slowdown of many concurrent transfers; 1: none
  BandwidthSharing sharing = BandwidthSharing::fair;
  WriteCache cache{};
  // Returns the largest rate at which it takes data.
  double most_bandwidth() const { return std::max(bandwidth, cache.bytes_per_s); }
  std::string policy{};        // access policy for this target from the start; "": the scenario's
  bool policy_allows = false;  // applications may have another one there
  // Names of its parts (storage servers, OSTs), of equal bandwidth; none: it is one whole.
  std::vector<std::string> parts{};
  std::vector<ServerSpec> servers{};  // I/O servers in front of it, in order of arrival; none: applications write past
  // Returns the fraction of the target that so many parts are; 0 stands for all.
  double fraction(std::size_t count) const {
    return count == 0 ? 1 : static_cast<double>(count) / static_cast<double>(parts.size());
  }
};

// The cost model of a reconfiguration: the application computes nothing for this time (simulated seconds).
struct ReconfigurationCost {
  double fixed_s = 1;
  double per_process_s = 0;  // seconds for each process that is started
  double bytes_per_s = 0;    // rate at which data is redistributed; 0: redistribution takes no time
};

// Selects the iteration times that the coordinator receives (PROFILE) when an application begins.
enum class ProfileAccuracy {
  exact,
  none,   // no PROFILE: the coordinator must measure the running application
  wrong,  // reports 30 % less time for more processes than at the start, and 30 % more for fewer
};

// The points inside an I/O operation at which an application can be preempted. It can always stop between operations.
enum class Grain {
  round,      // after each round of a collective access, and at the end of a file
  file,       // only at the end of a file
  operation,  // only at the end of the operation
};

// The accuracy of the phase size that each operation announces (START_IO's `phase_bytes`). The size of the operation
// itself is always exact.
enum class Announces {
  exact,
  nothing,
  wrong,  // exact size times one factor for each application: log-uniform, 0.3 to 3
};

// One I/O phase of a period: a burst of equal operations on one target.
struct PhaseSpec {
  double after = 1;     // fraction of the period's iterations that precede the phase, 0 to 1
  double gap_s = 0;     // seconds of computing before the phase that belong to no iteration
  double bytes = 0;     // sum over all processes and operations
  bool reads = false;   // false: it writes
  bool cached = false;  // served by the page cache: the phase does not load the target
  std::string target;   // name of the target of its files, even if cached
  // Position in Scenario::targets.
  std::size_t target_index = 0;
  // Parts of the target that its files are on, by name and by position in TargetSpec::parts; none: all.
  std::vector<std::string> parts{};
  std::vector<std::size_t> part_numbers{};
  std::int64_t operations = 1;  // all of the same size
  double operation_gap_s = 0;   // seconds of computing between two operations
};

// Probabilities of faults. Each is drawn from the scenario's seed, so every policy meets the same faults.
struct Troubles {
  double period_change = 0;   // per period: the computing time changes for good, to between half and twice the original
  double phase_skip = 0;      // per phase: the phase does no I/O
  double death = 0;           // per period: the application dies within it
  double resize_refusal = 0;  // per reconfiguration: the application refuses it at once
  double resize_failure = 0;  // per reconfiguration: it fails after its full cost
};

// One simulated application. Byte counts are sums over its processes; times are simulated seconds.
struct ApplicationSpec {
  std::string name;  // unique in the scenario
  std::string program = "jacobi";
  std::string policy{};  // access policy for this application; "": as for others
  // Default target of the phases: its name, and its position in Scenario::targets.
  std::string target;
  std::size_t target_index = 0;
  std::vector<std::string> parts{};  // default of the phases on that target, as in PhaseSpec
  std::vector<std::size_t> part_numbers{};
  std::int64_t processes = 1;
  bool malleable = false;
  double start_s = 0;
  double wait_for_cores_s = 0;  // it asks for cores first, and waits for them at most this long; 0: it does not ask
  // Iterations in all, iterations in one I/O period, and iterations between two control points.
  std::int64_t iterations = 0;
  std::int64_t iterations_per_phase = 0;
  std::int64_t control_every = 1;
  model::SpeedupCurve curve;  // seconds of one iteration for each number of processes
  // Seconds of one phase alone for each number of processes; empty: the target is the limit.
  model::SpeedupCurve io_curve;
  double io_bytes = 0;            // bytes of one phase
  std::vector<PhaseSpec> phases;  // phases of one period, in order; empty: one phase of io_bytes at its end
  std::int64_t files = 1;         // per operation, of equal size, accessed one after the other
  Grain grain = Grain::round;
  Announces announces = Announces::exact;
  double phase_gap_s = 0;          // HOCKET_PHASE_GAP_S: idle time that ends a phase; 0: the last operation ends it
  double gap_jitter = 0;           // relative standard deviation of each gap
  double cache_bytes_per_s = 5e9;  // rate at which the page cache serves cached phases
  // Processes that do I/O: the weight at proportional targets, and the clients of I/O servers; 0: all.
  std::int64_t writers = 0;
  // Most bytes of one request to an I/O server; 0: it writes past the servers of its targets.
  double request_bytes = 0;
  double round_bytes = 0;   // bytes of one round; 0: so small that the application can stop at any time
  double io_bandwidth = 0;  // largest rate that the application can use, bytes per second; 0: the target's
  double jitter = 0;        // relative standard deviation of each period's computing time
  double io_jitter = 0;     // relative standard deviation of the bytes of each phase
  // Reported to the coordinator as the floating-point operations of one iteration; 0: unknown.
  double flop_per_iteration = 0;
  double data_bytes = 0;   // bytes to redistribute in a reconfiguration
  std::int64_t nodes = 1;  // compute nodes that it occupies
  // Bandwidth by number of I/O servers, rising, if the data of its files go through them (`hocket forward`); else
  // empty.
  std::vector<allocation::Choice> bandwidths{};
  bool measured = true;  // the coordinator knows these bandwidths
  ProfileAccuracy profile = ProfileAccuracy::exact;
  Troubles troubles;
};

// A whole simulation. The order of the applications decides their member ids and their nodes.
struct Scenario {
  std::string name;
  std::uint64_t seed = 1;
  double until_s = 0;       // end of the simulation; 0: when all applications have ended
  double max_wait_s = 600;  // HOCKET_MAX_WAIT_S of all applications
  // Applications start in the order in which they come, each as soon as enough nodes are free.
  bool fifo = false;
  std::int64_t nodes = 1;
  std::int64_t cores_per_node = 1;
  std::vector<TargetSpec> targets;
  ReconfigurationCost reconfiguration;
  std::vector<ApplicationSpec> applications;
};

}  // namespace hocket::sim
