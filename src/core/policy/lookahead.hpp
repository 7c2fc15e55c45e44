// The look-ahead predicts what a wait leads to: it plays the next I/O phases of all applications on a target through.
// One wait can move two programs of similar periods apart for good, or keep them in step, so that one of them waits for
// the other in each period (CLARISSE+FlexMPI, section 4.2.1, corrects this by resizing). A comparison of the phases
// under way alone does not see that.
//
// After the first choice all applications follow one rule. A newcomer waits if the holder has no more left than the
// newcomer asks for, and else goes beside it. By this rule no application ends later than by sharing evenly. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace hocket::policy {

// One application in the look-ahead. Times are in seconds; those of I/O are alone.
struct Actor {
  // One I/O phase and the computing before it.
  struct Phase {
    double computing_s = 0;
    double size_s = 0;  // I/O time; 0: none on this target
  };
  double left_s = 0;            // of the phase under way; 0: it computes
  bool has = false;             // it holds the target
  double starts_in_s = 0;       // if it computes: when the first of `phases` begins
  std::vector<Phase> phases{};  // one cycle after the phase under way, repeated for ever; empty: no more I/O
  double interference = 2;      // how many times slower it is beside one other
};

// Returns the seconds that each actor loses within the horizon by waiting and by being slowed down, if actor `goes`
// begins now beside the holder and the other actors that want the target wait; without `goes`, all of them wait. The
// cost is the number of events, at most 2000, times the number of actors.
std::vector<double> lost_s(std::span<const Actor> actors, std::optional<std::size_t> goes, double horizon_s);

}  // namespace hocket::policy
