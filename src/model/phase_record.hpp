// One I/O phase of an application as it was measured, and the last ones of them.
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

// Expected: start <= end, no negative duration or number.
struct PhaseRecord {
  Time start{};                 // of the first operation, wait for the grant included
  Time end{};                   // of the last operation
  Duration io{};                // in I/O operations
  Duration wait{};              // for grants
  Duration cpu{};               // since the end of the phase before
  Duration comm{};              // since the end of the phase before
  std::int64_t bytes = 0;       // of all processes
  std::int64_t iteration = -1;  // done at its end; -1: not known
  std::int64_t processes = 0;   // that computed; 0: not known, which is a size as others are
  bool resized = false;         // that number changed at least once since the phase before
  std::int64_t written = 0;     // the part of `bytes` that was not read
  std::string target{};         // "": not known
};

// The last phases, the oldest first.
class PhaseRing {
 public:
  static constexpr std::size_t capacity = 32;

  void push(PhaseRecord phase) {
    if (kept_.size() < capacity) {
      kept_.push_back(std::move(phase));
    } else {
      kept_[oldest_] = std::move(phase);
      oldest_ = (oldest_ + 1) % capacity;
    }
  }
  std::size_t size() const { return kept_.size(); }
  const PhaseRecord& operator[](std::size_t i) const { return kept_[(oldest_ + i) % kept_.size()]; }
  PhaseRecord& operator[](std::size_t i) { return kept_[(oldest_ + i) % kept_.size()]; }
  // Precondition: not empty.
  const PhaseRecord& newest() const { return (*this)[size() - 1]; }
  PhaseRecord& newest() { return (*this)[size() - 1]; }

 private:
  std::vector<PhaseRecord> kept_;
  std::size_t oldest_ = 0;
};

// Something for each kept phase, in their order.
template <class T>
using EachPhase = std::array<T, PhaseRing::capacity>;

}  // namespace hocket::model
