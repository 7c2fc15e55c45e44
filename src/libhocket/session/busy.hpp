// Records when a process was in I/O, or waited, during one I/O phase: a few intervals, each with its busy time.
//
// Operations that follow each other closely become one interval. If there are too many intervals, the closest two are
// merged. Merging keeps the sum of the busy time, because an interval states how much of it was busy. `add` allocates
// nothing. Pure. Not thread-safe: the caller holds a lock.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/time.hpp"

namespace hocket::runtime {

class BusyIntervals {
 public:
  static constexpr std::size_t most = 32;                          // intervals kept
  static constexpr Duration close = std::chrono::milliseconds{1};  // gap below which two intervals become one

  // Adds the time from `start` to `end`. It may overlap what another thread has added; the overlap counts once.
  void add(Time start, Time end);
  void clear() { count_ = 0; }
  // Returns "START:LENGTH:BUSY …" in ns, with START counted from `since`. ":BUSY" is omitted if it equals LENGTH.
  std::string text(Time since) const;

 private:
  struct BusyInterval {
    Time start{};
    Time end{};
    Duration busy{};
  };
  void merge(std::size_t i);

  std::array<BusyInterval, most + 1> intervals_;  // in order of time, at least `close` apart; the last is for `add`
  std::size_t count_ = 0;
};

}  // namespace hocket::runtime
