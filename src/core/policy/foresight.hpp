// Predicts how much time two applications on one target lose to each other's I/O phases. It plays some periods through,
// with fixed times and without randomness. The interference policies weigh a resize by it (phase_shift.hpp).
// Pure. The cost is linear in the number of phases.
#pragma once

namespace hocket::policy {

// The future phases of one application. Times are in seconds, alone.
struct Phases {
  double first_s = 0;    // start of the first phase from now; negative: it has begun
  double io_s = 0;       // I/O time of a phase
  double compute_s = 0;  // computing between two phases; above 0
  double slower = 0;     // how many times slower it is beside the other
};

// Returns the seconds that both together lose against running alone; 0 if one of them does no I/O or never computes.
// With `exclusive` the target is granted to one at a time, first come, first served, and phases that are requested
// before `until_s` count. Else both slow each other down while they overlap, and the time up to `until_s` counts.
double lost_together(const Phases& a, const Phases& b, double until_s, bool exclusive);

}  // namespace hocket::policy
