// Predicts the I/O times of applications that want one target, for a given order and number of applications at once.
// Progress is piecewise linear (CALCioM, section II-C). Alone, an application runs at full speed; beside others it is
// slower, as was measured or is assumed (model/progress.hpp). Pure. Times are in seconds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/progress.hpp"
#include "policy/metric.hpp"

namespace hocket::policy {

// The I/O phase of one application.
struct PhaseJob {
  double processes = 1;
  double alone_s = 0;  // the whole phase, alone
  double left_s = 0;   // rest of the phase, alone; above 0
  double spent_s = 0;  // time since the phase began
  model::Slowness slowness{2, 0};
  double demanded = 1;  // part of the target's capacity that it takes alone
  double stop_s = 0;    // time until it has stopped, if it is preempted
  double flops = 1;     // FLOP/s while it computes, for the metric
  double ran_s = 0;     // time since the application began
};

// An order of the jobs. Indices are those of the jobs.
struct Plan {
  std::vector<std::size_t> order;  // all jobs, in order of service
  std::size_t at_once = 1;         // jobs that have the target together; when one ends, the next begins
  double delay_s = 0;              // delay of the second job, with at_once > 1
  bool interrupts = false;         // job 0 holds the target, and nothing begins until it has stopped
};

// Returns the expectation for each job if all continue at once from now, as without coordination.
std::vector<ExpectedPhase> expect_together(std::span<const PhaseJob> jobs);

// Computes the expectation for each job under the plan, in the order of the jobs. `expected` has the size of `jobs`.
void expect(std::span<const PhaseJob> jobs, const Plan& plan, std::span<ExpectedPhase> expected);

}  // namespace hocket::policy
