// Plays an allocation through before it is chosen: applications that compute for a while and then have their target for
// themselves, first come, first served, over some periods.
//
// It is what contention.hpp computes, without the assumption that phases meet by chance: where periods hardly vary,
// applications fall into step, and then wait much more or much less than on average. It costs thousands of times as
// much, so it is for few applications and few allocations.
//
// The variation of the periods is drawn, from a fixed seed and the same for every allocation: two of them differ by
// what they are, not by luck. Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "policy/contention.hpp"

namespace hocket::policy {

struct Rehearsed {
  Contention::Job job;
  double spread = 0;  // of the computing time: standard deviation over mean
};

// Worth in a second, of all jobs, as Contention::rate; of `periods` periods of the slowest job, each of some starts.
// Costs the number of I/O phases in that time, times the logarithm of the jobs. Precondition: every job computes for
// more than no time.
double rehearse(const std::vector<Rehearsed>& jobs, std::size_t targets, int periods);

}  // namespace hocket::policy
