// Decides which processes leave when an application shrinks, and which of them can end. Pure.
//
// MPI lets a process end only when all processes of its MPI_COMM_WORLD (its *world*) do. So a process that is no longer
// needed ends if every other process of its world has ended or sleeps; otherwise it sleeps. When the last process of a
// world stops computing, the sleeping ones of that world end with it.
#pragma once

#include <cstdint>
#include <vector>

namespace hocket::runtime {

// Identity of a process, as the others know it. It has only 64-bit numbers, so MPI sends it as it is.
struct ProcessInfo {
  std::int64_t pid = 0;
  std::int64_t host = 0;   // hash of its node's name
  std::int64_t world = 0;  // the same for all processes of its MPI_COMM_WORLD, and for no others
  std::int64_t world_rank = 0;
  std::int64_t world_size = 1;
  std::int64_t joined = 0;  // 1: started outside of the launcher, which does not watch it
};

// Result of shrink() and leave_all(): each rank is in exactly one of the first three lists.
struct Departure {
  std::vector<int> stay;              // ranks that continue to compute, ascending
  std::vector<int> end;               // ranks that end
  std::vector<int> sleep;             // ranks that sleep
  std::vector<ProcessInfo> sleepers;  // all that sleep afterwards, those that slept before first
};

// Chooses the processes that stay when `targets` are to be left. Rank 0 always stays. Whole worlds that can end leave
// first, the highest ranks first. Preconditions: 1 <= targets <= processes.size(); no sleeper is an active rank.
Departure shrink(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers, int targets);

// Does the same if no process stays (baseline).
Departure leave_all(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers);

}  // namespace hocket::runtime
