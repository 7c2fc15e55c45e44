// The cycle of an application's I/O phases: a program that writes, computes a little and reads back has two kinds of
// phases, which come in turn; one whose every fourth checkpoint is a large one has a cycle of four.
//
// Phases are compared by their target, the bytes that they wrote and read, and the computing before them. A cycle that
// came twice in a row is held against the others, some of which may have been left out; the shortest one counts whose
// phases are clearly more alike than neighbours are. In most applications neighbours are alike, and the cycle is one
// phase long.
//
// Pure, not thread-safe. Costs: where neighbours are alike, a look at the last phases; else, for each length, so many
// comparisons of each phase.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/phase_record.hpp"

namespace hocket::model {

struct PhaseCycle {
  static constexpr std::size_t longest = 8;

  std::size_t length = 1;
  // Of each kept phase its place in the cycle. The newest one is in the last place, so that place 0 comes next.
  EachPhase<std::uint8_t> place{};

  // Whether phase i + 1 is the one that follows phase i in the cycle: none was left out between.
  bool follows(std::size_t i) const { return place[i + 1] == (place[i] + 1) % length; }
};

PhaseCycle find_cycle(const PhaseRing& phases);

}  // namespace hocket::model
