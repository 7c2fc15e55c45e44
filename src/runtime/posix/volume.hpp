// Which POSIX accesses of a process are I/O to take turns for, and which are the small change of every program: its
// log, its input, the modules of an interpreter.
//
// Accesses that come less than a gap apart count from the one that brings what they ask for to `worth_asking_bytes`,
// and until none has come for a gap. Lock-free: an access that does not count costs some nanoseconds. Threads at once
// may let one count that would not, or the other way round.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace hocket::runtime::posix {

constexpr std::int64_t worth_asking_bytes = std::int64_t{1} << 20;

class Volume {
 public:
  // Whether an access of `bytes` (at most, not negative) that begins now counts.
  bool counts(std::int64_t bytes, Time now, Duration gap) {
    if (follows(now)) return true;
    if (to_ns(now) - last_.load(std::memory_order_relaxed) > gap.count()) unasked_.store(0, std::memory_order_relaxed);
    const std::int64_t asked = std::min(bytes, worth_asking_bytes);
    if (unasked_.fetch_add(asked, std::memory_order_relaxed) + asked < worth_asking_bytes) return false;
    unasked_.store(0, std::memory_order_relaxed);
    return true;
  }
  // One that does not count has ended.
  void passed(Time now) { last_.store(to_ns(now), std::memory_order_relaxed); }
  // One that counts has ended.
  void counted(Time now, Duration gap) { counts_until_.store(to_ns(now + gap), std::memory_order_relaxed); }

  // A sync is about all that was written since the last.
  void written(std::int64_t bytes) { unsynced_.fetch_add(bytes, std::memory_order_relaxed); }
  bool sync_counts(Time now) {
    return unsynced_.exchange(0, std::memory_order_relaxed) >= worth_asking_bytes || follows(now);
  }

 private:
  bool follows(Time now) const { return to_ns(now) < counts_until_.load(std::memory_order_relaxed); }

  std::atomic<std::int64_t> unasked_ = 0;
  std::atomic<std::int64_t> unsynced_ = 0;
  std::atomic<std::int64_t> last_ = 0;          // ns: when one that does not count ended
  std::atomic<std::int64_t> counts_until_ = 0;  // ns
};

}  // namespace hocket::runtime::posix
