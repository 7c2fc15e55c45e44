// The plan of an emulated application: the description of `hocket emulate`, checked and completed by Python
// (python/hocket/emulator/plan.py). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hocket::emulator {

enum class Kind {
  compute,
  memory,
  sleep,
  sendrecv,
  broadcast,
  allgatherv,
  reduce,
  allreduce,
  alltoall,
  halo,
  isend_irecv,
  wait,
  write,
  read
};
enum class ShareDistribution { linear, one, random };
enum class Access { collective, independent, file_per_process, posix };

// Factors by number of processes, in ascending order.
using Factors = std::vector<std::pair<int, double>>;

// The distribution of time or bytes over the ranks.
struct Sharing {
  std::vector<std::vector<double>> shares;  // each for as many ranks as it has elements
  double imbalance = 1;                     // with other numbers of ranks: the largest share over the mean
  ShareDistribution distribution = ShareDistribution::linear;
};

struct Stage : Sharing {
  Kind kind = Kind::compute;
  std::string name;
  std::int64_t every = 1;
  std::int64_t repeat = 1;
  double time_s = 0;              // with one process
  bool ends_by_time = false;      // else by operations, or by one call
  bool ends_by_cpu_time = false;  // of the rank
  std::int64_t granularity = 0;   // points (compute), rows (memory)
  double operation_s = 0;         // CPU time of one operation of this granularity
  Factors factors;                // empty: the groups' factors
  double jitter = 0;
  std::int64_t bytes = 0;
  int dimensions = 1;
  int waits_for = -1;  // position of the stage in the phase that a wait completes
  std::string file;
  Access access = Access::collective;
  std::int64_t request_bytes = 0;  // 0: all of a rank's bytes
  bool strided = false;
  bool append = false;
  bool sync = false;
};

struct PhasePlan {
  std::int64_t iterations = 0;
  std::vector<Stage> stages;
};

struct GroupPlan {
  int processes = 0;
  std::int64_t iterations = 0;
  double factor = 1;
  std::string methods;         // of the reconfiguration that leads into it, as hocket_malleable_request has them
  bool in_background = false;  // that one goes on while the group before computes
};

// The data that a reconfiguration redistributes.
struct DataPlan : Sharing {
  std::int64_t bytes = 0;
  std::int64_t constant_bytes = 0;    // of them
  std::int64_t replicated_bytes = 0;  // besides, in each process
  std::int64_t replicated_constant_bytes = 0;
};

struct EmulationPlan {
  std::string name;
  std::uint64_t seed = 1;
  DataPlan data;
  double resize_limit_s = 60;  // longest wait for a resize
  std::vector<GroupPlan> groups;
  std::vector<PhasePlan> phases;

  std::int64_t iterations() const;
  // Returns the iteration before which a group begins.
  std::int64_t first_iteration(std::size_t group) const;
  // Returns the group that computes an iteration with so many processes, or nullopt if the plan has none: the last one
  // of that size that has begun.
  std::optional<std::size_t> group_of(std::int64_t iteration, int processes) const;
};

// The place of an iteration in the plan.
struct Position {
  std::size_t phase = 0;
  std::int64_t iteration = 0;  // in the phase, from 0
};
Position position_of(const EmulationPlan& plan, std::int64_t iteration);

// True if the stage takes place in this iteration of its phase.
bool takes_place(const Stage& stage, std::int64_t iteration_of_phase);

// Returns how often the stage has taken place before this iteration of its phase.
std::int64_t times_before(const Stage& stage, std::int64_t iteration_of_phase);

}  // namespace hocket::emulator
