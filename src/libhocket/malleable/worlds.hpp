// Decides which processes leave when an application shrinks, and which of them can end. Pure.
//
// MPI lets a process end only when all processes of its MPI_COMM_WORLD (its *world*) do. So a process that is no longer
// needed ends if every other process of its world has ended or sleeps; otherwise it sleeps. When the last process of a
// world stops computing, the sleeping ones of that world end with it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/node_counts.hpp"
#include "redistribute/order.hpp"

namespace hocket::runtime {

// Identity of a process, as the others know it. MPI sends it as it is.
struct ProcessInfo {
  std::int64_t pid = 0;
  std::int64_t host = 0;   // hash of its node's name
  std::int64_t world = 0;  // the same for all processes of its MPI_COMM_WORLD, and for no others
  std::int64_t world_rank = 0;
  std::int64_t world_size = 1;
  std::int64_t joined = 0;      // 1: started outside of the launcher, which does not watch it
  std::int64_t core = -1;       // on which alone it may run; -1: on several
  std::array<char, 72> node{};  // name of its node; ends with a zero

  std::string_view node_name() const { return node.data(); }
};

// Result of shrink() and leave_all(): each rank is in exactly one of the first three lists.
struct Departure {
  std::vector<int> stay;              // ranks that continue to compute, ascending
  std::vector<int> end;               // ranks that end
  std::vector<int> sleep;             // ranks that sleep
  std::vector<ProcessInfo> sleepers;  // all that sleep afterwards, those that slept before first
};

// Chooses the processes that stay as those that hold most of the parts of the new distribution, as far as the worlds
// leave a choice (redistribute/order.hpp); each part is for one process. Rank 0 always stays. Whole worlds that can end
// leave first; of those with several processes, the ones with the highest ranks. Preconditions: overlap.sources() is
// processes.size(), and 1 <= overlap.parts() <= processes.size(); no sleeper is an active rank.
//
// `leave` names nodes that are to be left, the first before the others, and how many processes should leave each. That
// comes before the order above: on these nodes, whole worlds that can end leave first, then processes that will sleep.
Departure shrink(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers,
                 const redistribute::Overlap& overlap, const std::vector<NodeCount>& leave = {});

// Does the same if no process stays (baseline).
Departure leave_all(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers);

// Returns how many of the processes are on each node, in the order of the nodes' first processes.
std::vector<NodeCount> counts_by_node(const std::vector<ProcessInfo>& processes);

}  // namespace hocket::runtime
