// A rehearsal plays a core allocation through before it is chosen. Each application computes for a while and then has
// its target exclusively, first come, first served, over some periods.
//
// It computes the same as contention.hpp, but does not assume that phases meet by chance. If periods hardly vary,
// applications fall into step, and then wait much more or much less than on average. A rehearsal costs thousands of
// times as much, so it is for few applications and few allocations.
// The variation of the periods is drawn from a fixed seed, the same for every allocation. So two allocations differ by
// what they are, not by luck. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "policy/contention.hpp"

namespace hocket::policy {

struct Rehearsed {
  ContentionModel::CyclicJob job;
  double spread = 0;  // of the computing time: standard deviation / mean
};

// Returns the worth per second of all jobs, as ContentionModel::rate does: the mean of four plays that differ in the
// first phases, each over `periods` periods of the slowest job. The cost is the number of I/O phases in that time,
// times the logarithm of the number of jobs. Preconditions: a job's target is below `targets`, and one period is longer
// than 0.
double rehearse(const std::vector<Rehearsed>& jobs, std::size_t targets, int periods);

}  // namespace hocket::policy
