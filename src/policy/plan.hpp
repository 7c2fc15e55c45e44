// What becomes of applications that want one target, by the order in which they get it and how many have it at once.
//
// Progress is piecewise linear (CALCioM, section II-C): alone an application goes at its full speed, beside others it
// is slower by as much as was measured or is assumed (model/progress.hpp). Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/progress.hpp"
#include "policy/metric.hpp"

namespace hocket::policy {

// An application's I/O phase.
struct Job {
  double processes = 1;
  double alone_s = 0;  // of the whole phase
  double left_s = 0;   // alone; above 0
  double spent_s = 0;  // since the phase began
  model::Slowness slowness{2, 0};
  double demanded = 1;  // part of what the target can bear
  double stop_s = 0;    // that it goes on for before it has stopped
};

struct Plan {
  std::vector<std::size_t> order;  // of the jobs
  std::size_t at_once = 1;         // so many have the target together; when one ends, the next one in the order begins
  double delay_s = 0;              // after which the second one begins, with at_once > 1
  bool interrupts = false;         // the first job has the target, and goes on until it has stopped
};

// What is expected of each job where all go on at once, from now: without coordination.
std::vector<Expected> expect_together(std::span<const Job> jobs);

// What is expected of each job, in their order (not that of the plan). `expected` has room for all.
void expect(std::span<const Job> jobs, const Plan& plan, std::span<Expected> expected);

}  // namespace hocket::policy
