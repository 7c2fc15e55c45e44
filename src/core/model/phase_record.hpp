// A PhaseRecord is one I/O phase of an application as it was measured; a PhaseRing keeps the latest of them. The
// histories and estimates of this folder are computed from these records.
//
// Pure, not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace hocket::model {

// One measured I/O phase. Expected: start <= end, no negative duration or number.
struct PhaseRecord {
  Time start{};                 // start of the first operation, its wait included
  Time end{};                   // end of the last operation
  Duration io{};                // time in I/O operations
  Duration wait{};              // time waiting for grants
  Duration cpu{};               // since the end of the previous phase
  Duration comm{};              // since the end of the previous phase
  std::int64_t bytes = 0;       // moved by all processes
  std::int64_t iteration = -1;  // completed at its end; -1: unknown
  std::int64_t processes = 0;   // processes that computed; 0: unknown, treated as a size like any other
  bool resized = false;         // that number changed since the previous phase
  std::int64_t written = 0;     // written, a part of `bytes`
  std::string target{};         // "": unknown
};

// The latest phases, the oldest first. A new phase replaces the oldest when the ring is full.
class PhaseRing {
 public:
  static constexpr std::size_t capacity = 32;
  static_assert((capacity & (capacity - 1)) == 0, "a power of two, because a place is found by a mask");

  void push(PhaseRecord phase) {
    if (kept_.size() < capacity) {
      kept_.push_back(std::move(phase));
    } else {
      kept_[oldest_] = std::move(phase);
      oldest_ = place(1);
    }
  }
  std::size_t size() const { return kept_.size(); }
  const PhaseRecord& operator[](std::size_t i) const { return kept_[place(i)]; }
  PhaseRecord& operator[](std::size_t i) { return kept_[place(i)]; }
  // Precondition: not empty.
  const PhaseRecord& newest() const { return (*this)[size() - 1]; }
  PhaseRecord& newest() { return (*this)[size() - 1]; }

 private:
  // Until the ring is full, the oldest is at 0 and nothing wraps.
  std::size_t place(std::size_t i) const { return (oldest_ + i) & (capacity - 1); }

  std::vector<PhaseRecord> kept_;
  std::size_t oldest_ = 0;
};

// One value for each kept phase, in the same order.
template <class T>
using EachPhase = std::array<T, PhaseRing::capacity>;

}  // namespace hocket::model
