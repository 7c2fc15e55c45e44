// What a choice leads to: the next I/O phases of all applications on a target, played through.
//
// To wait once can move two programs of like periods apart for good, and to overtake can keep them in step (CLARISSE+
// FlexMPI, section 4.2.1, corrects this by resizing). A comparison of the phases under way alone does not see it.
//
// After the choice everybody goes by one rule: whoever comes waits for the holder where that has no more left than what
// he asks for himself, and goes on beside it else. By this rule nobody ends later than by sharing evenly.
//
// Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "policy/metric.hpp"

namespace hocket::policy {

struct Actor {
  // A phase, alone, and the computing before it.
  struct Phase {
    double computing_s = 0;
    double size_s = 0;  // 0: none on this target
  };
  double processes = 1;
  double left_s = 0;            // of the phase under way, alone; 0: it computes
  double stop_s = 0;            // that it goes on for before it has stopped
  bool has = false;             // the target
  double starts_in_s = 0;       // where it computes: then the first of the phases begins
  std::vector<Phase> phases{};  // after the one under way, again and again; empty: none comes
  double interference = 2;      // how many times slower beside one other
};

// Of those who want the target now. Nobody named: who has it goes on, and the others wait.
struct Opening {
  std::vector<std::size_t> go{};             // waiting ones that begin now, beside who has it
  std::optional<std::size_t> interrupted{};  // the holder; the first of `go` begins when it has stopped
  double delay_s = 0;                        // after which they begin, where nobody is interrupted
  bool together = false;                     // everybody from now on, without any coordination
};

// The time that each loses to others within the horizon: waiting, or slowed down.
std::vector<double> lost_s(std::span<const Actor> actors, const Opening& choice, double horizon_s);

}  // namespace hocket::policy
