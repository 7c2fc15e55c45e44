// When a process was in I/O during one I/O phase, or waited: a few intervals, each with how much of it that was.
//
// Operations that follow each other closely are one interval, and intervals that are too many are joined with their
// neighbours; the sum stays what it was, for an interval says how much of it was busy. `add` allocates nothing. Not
// thread-safe: the caller holds a lock.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/time.hpp"

namespace hocket::runtime {

class BusyIntervals {
 public:
  static constexpr std::size_t most = 32;
  static constexpr Duration close = std::chrono::milliseconds{1};

  // From `start` to `end`; may overlap what was added before, by another thread: then it counts once.
  void add(Time start, Time end);
  void clear() { count_ = 0; }
  // "START:LENGTH:BUSY …", nanoseconds since `since`; ":BUSY" is left out where it is all of the length.
  std::string text(Time since) const;

 private:
  struct Interval {
    Time start{};
    Time end{};
    Duration busy{};
  };
  void merge(std::size_t i);

  std::array<Interval, most + 1> intervals_;  // in order of time, `close` or more apart
  std::size_t count_ = 0;
};

}  // namespace hocket::runtime
