// Who leaves when an application shrinks, and who can end then. Pure.
//
// MPI lets a process end only when all of its MPI_COMM_WORLD do. So a process that is not needed any more ends if every
// other of its world has ended or sleeps, and sleeps otherwise; the sleepers of a world that is over end with it.
#pragma once

#include <cstdint>
#include <vector>

namespace hocket::runtime {

// A process, as the others know it.
struct ProcessInfo {
  std::int64_t pid = 0;
  std::int64_t host = 0;   // a hash of its node's name
  std::int64_t world = 0;  // the same for all of its MPI_COMM_WORLD, and for no others
  std::int64_t world_rank = 0;
  std::int64_t world_size = 1;
  std::int64_t joined = 0;  // 1: started outside of the launcher, which does not watch it
};

struct Departure {
  std::vector<int> stay;              // ranks, in order
  std::vector<int> end;               // ranks that end
  std::vector<int> sleep;             // ranks that sleep
  std::vector<ProcessInfo> sleepers;  // all that sleep after it, those that slept before first
};

// Which of the processes stay when `targets` are to be left: never without rank 0; those first whose whole world can
// end, the highest ranks first. Preconditions: 1 <= targets <= processes.size(); each sleeper is of no active rank.
Departure shrink(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers, int targets);

// The same where nobody stays (baseline).
Departure leave_all(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers);

}  // namespace hocket::runtime
