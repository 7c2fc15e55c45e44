// Searches for the best schedule with perfect knowledge: which application gets which target when. The simulator itself
// predicts what follows each choice. The gain of this schedule is the yardstick for the gain of a policy.
//
// The search minimises the sum over all applications of their I/O time, waits included. No application may take
// longer than uncoordinated. A schedule is a list of choices. A choice is due whenever something changes about a
// target for which an application waits: which of the waiting applications are granted, or which holders are stopped.
// Granting none holds the target for another application; granting several lets them share it. A beam search extends
// lists choice by choice. It values a list by the best result of some rules that continue from its end. Afterwards
// single choices are changed for as long as that gains something. No access begins at a time at which nothing else
// happens (CALCioM's delay).
//
// The result is a bound in practice, not in theory: best_test.cpp compares it with all schedules where these can be
// counted. Deterministic; one thread.
#pragma once

#include "base/result.hpp"
#include "sim/report.hpp"
#include "sim/scenario.hpp"

namespace hocket::sim {

// Limit on the number of applications; more have too many schedules to search.
constexpr std::size_t most_searched = 6;

// Returns the report of the best schedule found; the caller fills in `policy` and `wall_s`. The search costs some ten
// thousand simulations. Returns an error for more than `most_searched` applications.
Result<SimulationReport> best_schedule(const Scenario& scenario);

// Returns the sum over the applications of their I/O time, waits included, in seconds.
double io_with_waits(const SimulationReport& report);

// Returns the least sum over all schedules, for tests. Returns an error if there are more than `most_schedules`.
Result<double> least_of_all_schedules(const Scenario& scenario, std::size_t most_schedules);

}  // namespace hocket::sim
