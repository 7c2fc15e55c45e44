// The best schedule that a search finds with perfect knowledge: who gets which target when, with the simulator itself
// as the model of what follows. What a policy gains is held against what this one gains.
//
// It minimises the sum over the applications of their I/O time, waits included, such that no application takes longer
// than uncoordinated. The schedule is a list of choices, one for each moment at which somebody waits for a target that
// just changed: who of them is granted (nobody, so that the target is held for another one, or several), or which
// holders are to stop. A beam search extends lists choice by choice and values each by the best of some rules that go
// on from there; then single choices are changed for as long as that gains something. No access begins at a time at
// which nothing else happens (CALCioM's delay).
//
// It is a bound in practice, not in theory: best_test.cpp holds it against all schedules where they can be counted.
#pragma once

#include "base/result.hpp"
#include "sim/report.hpp"
#include "sim/scenario.hpp"

namespace hocket::sim {

// More applications than this have too many schedules.
constexpr std::size_t most_searched = 6;

// Its report; `policy`, `wall_s` are to be filled in. Costs some ten thousand simulations. Fails for more applications
// than can be searched.
Result<Report> best_schedule(const Scenario& scenario);

// The sum over the applications of their I/O time, waits included.
double io_with_waits(const Report& report);

// All schedules, for tests: the least sum, or none where there are more schedules than that.
Result<double> least_of_all_schedules(const Scenario& scenario, std::size_t most_schedules);

}  // namespace hocket::sim
