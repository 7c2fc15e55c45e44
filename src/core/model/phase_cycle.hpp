// A PhaseCycle describes how an application's I/O phases repeat. A program that writes, computes a little and reads
// back has two kinds of phases, which alternate. If every fourth checkpoint is a large one, the cycle has four
// phases.
//
// Phases are compared by target, bytes written and read, and the computing before them. A cycle that came twice in a
// row serves as the example for all other phases, some of which may have been left out. The shortest cycle wins whose
// phases are clearly more alike than neighbours are. In most applications neighbours are alike, and the cycle is one
// phase long.
//
// Pure, not thread-safe. If neighbours are alike, the cost is one look at the latest phases. Otherwise each phase is
// compared `length` times for each length considered.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/phase_record.hpp"

namespace hocket::model {

// The cycle that fits the kept phases of an application.
struct PhaseCycle {
  static constexpr std::size_t longest = 8;

  std::size_t length = 1;
  // Place of each kept phase in the cycle. The newest phase has the last place, so place 0 comes next.
  EachPhase<std::uint8_t> place{};

  // True if phase i + 1 follows phase i in the cycle, so that none was left out in between.
  bool follows(std::size_t i) const { return place[i + 1] == (place[i] + 1) % length; }
};

// Returns the cycle of the kept phases; length 1 if there is no clear one, or too few phases.
PhaseCycle find_cycle(const PhaseRing& phases);

}  // namespace hocket::model
