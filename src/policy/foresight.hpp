// What two applications on one target lose to each other's I/O phases over some periods: played through, with fixed
// periods and without randomness.
//
// Pure. Costs the number of phases.
#pragma once

namespace hocket::policy {

// An application's phases to come, in seconds from now.
struct Phases {
  double first_s = 0;    // start of the first; it may have begun
  double io_s = 0;       // of a phase alone
  double compute_s = 0;  // between two phases; above 0
  double slower = 0;     // how many times slower it is beside the other
};

// Seconds that both are later than they would be alone, in all, by phases that start before `until_s`. `exclusive`: the
// target is granted to one at a time, first come, first served; else each is slower while both are at it.
double lost_together(const Phases& a, const Phases& b, double until_s, bool exclusive);

}  // namespace hocket::policy
