// The data of this process that every wrapped call touches.
//
// Thread-safe: all members are atomic. Before MPI_Init, after MPI_Finalize and in the child of a fork(), `is_active()`
// is false and nothing else of libhocket's session may be used.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/time.hpp"
#include "session/counters.hpp"
#include "session/phases.hpp"

namespace hocket::runtime {

// The members are kept together: after a large copy the cache lines are cold, and each one costs. The first cache line
// has all that an access needs.
struct alignas(64) Hot {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  std::atomic<bool> active = false;                  // libhocket watches this process
  std::atomic<bool> reports = false;                 // the application is reported to hocketd
  std::atomic<bool> watches_posix = false;           // POSIX I/O of this process's threads is watched
  std::atomic<bool> threads = true;                  // several threads may call MPI concurrently
  std::atomic<bool> pause_wanted = false;            // a granted request of this process is to pause
  std::atomic<bool> own_files = false;               // hocket does the accesses of some file itself (collective/)
  std::atomic<bool> holds = false;                   // I/O servers may hold data of some file of this process
  std::atomic<bool> in_step = false;                 // the application is in a step (include/hocket/io.h)
  std::atomic<std::int64_t> phase_deadline = never;  // ns: an I/O phase is over after this time
  Counters counters;
  Counter uncoordinated;                 // operations whose request failed
  std::atomic<bool> logs_calls = false;  // each call is logged for `hocket capture` (call_log.hpp)

  bool is_active() const { return active.load(std::memory_order_relaxed); }
  // True if the application is reported to hocketd. Otherwise there are counters and nothing else.
  bool is_reported() const { return reports.load(std::memory_order_relaxed); }
  // True if a data access needs nothing but counting.
  bool only_counts() const { return is_active() && !is_reported() && !own_files.load(std::memory_order_relaxed); }
  // True if POSIX I/O is watched. False unless `is_active()`.
  bool is_posix_watched() const { return watches_posix.load(std::memory_order_acquire); }
  // True if a granted request of this process is to pause and has not answered yet. One load.
  bool is_pause_wanted() const { return pause_wanted.load(std::memory_order_relaxed); }

  [[gnu::always_inline]] void count(CallCounters& activity, std::int64_t moved, Duration took) {
    activity.add(moved, took, threads.load(std::memory_order_relaxed));
  }
  // Returns the running sums so far.
  TimeSums sums() const { return {counters.io(), counters.comm.time.duration(), counters.wait_time.duration()}; }
};
static_assert(offsetof(Hot, counters.comm) == 64);
inline constinit Hot hot;

}  // namespace hocket::runtime
