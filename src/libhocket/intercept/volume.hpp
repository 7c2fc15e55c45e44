// Decides which POSIX accesses of a process are coordinated. The others are the minor I/O of every program: its log,
// its input, the modules of an interpreter.
//
// Accesses that follow each other within a gap are added up. They count from the access that brings the sum to
// `worth_asking_bytes`, until none has come for a gap. Lock-free: an access that does not count costs some nanoseconds.
// Concurrent threads may make an access count that otherwise would not, or the other way round.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace hocket::runtime::posix {

// The sum of bytes from which accesses are worth a request.
constexpr std::int64_t worth_asking_bytes = std::int64_t{1} << 20;

class Volume {
 public:
  // Returns true if an access that begins now counts. `bytes` is the size asked for, at least 0.
  bool counts(std::int64_t bytes, Time now, Duration gap) {
    if (follows(now)) return true;
    if (to_ns(now) - last_.load(std::memory_order_relaxed) > gap.count()) unasked_.store(0, std::memory_order_relaxed);
    const std::int64_t asked = std::min(bytes, worth_asking_bytes);
    if (unasked_.fetch_add(asked, std::memory_order_relaxed) + asked < worth_asking_bytes) return false;
    unasked_.store(0, std::memory_order_relaxed);
    return true;
  }
  // Notes the end of an access that does not count.
  void passed(Time now) { last_.store(to_ns(now), std::memory_order_relaxed); }
  // Notes the end of an access that counts.
  void counted(Time now, Duration gap) { counts_until_.store(to_ns(now + gap), std::memory_order_relaxed); }

  // Adds written bytes. A sync covers all bytes written since the last sync, and counts if these are enough.
  void written(std::int64_t bytes) { unsynced_.fetch_add(bytes, std::memory_order_relaxed); }
  bool sync_counts(Time now) {
    return unsynced_.exchange(0, std::memory_order_relaxed) >= worth_asking_bytes || follows(now);
  }

 private:
  bool follows(Time now) const { return to_ns(now) < counts_until_.load(std::memory_order_relaxed); }

  std::atomic<std::int64_t> unasked_ = 0;       // bytes of accesses that did not count
  std::atomic<std::int64_t> unsynced_ = 0;      // bytes written since the last sync
  std::atomic<std::int64_t> last_ = 0;          // ns: end of the last access that did not count
  std::atomic<std::int64_t> counts_until_ = 0;  // ns: accesses that begin before it count
};

}  // namespace hocket::runtime::posix
