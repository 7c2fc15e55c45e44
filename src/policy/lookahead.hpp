// The look-ahead predicts what a choice leads to: it plays the next I/O phases of all applications on a target through.
// One wait can move two programs of similar periods apart for good, and overtaking can keep them in step (CLARISSE+
// FlexMPI, section 4.2.1, corrects this by resizing). A comparison of the phases under way alone does not see that.
//
// After the choice all applications follow one rule. A newcomer waits if the holder has no more left than the newcomer
// asks for, and else goes beside it. By this rule no application ends later than by sharing evenly. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "policy/metric.hpp"

namespace hocket::policy {

// One application in the look-ahead. Times are in seconds; those of I/O are alone.
struct Actor {
  // One I/O phase and the computing before it.
  struct Phase {
    double computing_s = 0;
    double size_s = 0;  // I/O time; 0: none on this target
  };
  double processes = 1;
  double left_s = 0;            // of the phase under way; 0: it computes
  double stop_s = 0;            // time until it has stopped, if it is preempted
  bool has = false;             // it holds the target
  double starts_in_s = 0;       // if it computes: when the first of `phases` begins
  std::vector<Phase> phases{};  // one cycle after the phase under way, repeated for ever; empty: no more I/O
  double interference = 2;      // how many times slower it is beside one other
};

// The choice for the applications that want the target now. By default the holder continues and the others wait.
// Indices are those of the actors.
struct Opening {
  std::vector<std::size_t> go{};             // waiting applications that begin now, beside the holder
  std::optional<std::size_t> interrupted{};  // the holder; `go` begins when it has stopped
  double delay_s = 0;                        // delay after which `go` begins, if no holder is preempted
  bool together = false;                     // all run at once for the whole horizon: no coordination
};

// Returns the seconds that each actor loses within the horizon by waiting and by being slowed down. The cost is the
// number of events, at most 2000, times the number of actors.
std::vector<double> lost_s(std::span<const Actor> actors, const Opening& choice, double horizon_s);

}  // namespace hocket::policy
