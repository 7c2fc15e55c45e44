// The workload is the demand of all applications on the targets. `predictive` optimises it, and all sharing policies
// keep its bound on how slow a change of sizes makes each application.
//
// An application that gets more processes comes to its target more often. Others then wait for it, even those that are
// never resized. `most_slowdown` bounds that: it limits by what share an I/O period may exceed the period with all
// applications at their initial sizes. Half of the limit is used (workload.cpp). Both periods are means of the model
// (contention.hpp). In it, waiting for each other costs about as much as sharing the bandwidth. So the period at
// initial sizes stands for an uncoordinated one. Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "policy/contention.hpp"
#include "policy/sharing.hpp"

namespace hocket::policy {

// Says how much one period of an application adds to the objective: FLOP, or progress in seconds at the original size.
// FLOP count only if they are known for every malleable application.
class Weights {
 public:
  explicit Weights(const CoreView& view);
  double of(const model::Application& application, const model::PeriodEstimate& original) const {
    return flops_ ? original.iterations * application.flop_per_iteration : original.period_s();
  }
  bool flops() const { return flops_; }

 private:
  bool flops_;
};

// All applications whose times are known. Those of the pool come first, in its order.
struct Workload {
  static constexpr auto unknown = std::numeric_limits<std::size_t>::max();

  ContentionModel queue;             // at the present sizes
  ContentionModel started;           // at the initial sizes
  std::vector<double> spreads;       // relative standard deviation of the periods, by job
  std::vector<std::size_t> sharers;  // index of each sharer's job, or `unknown`
  std::size_t targets;
};
Workload workload_of(const CoreView& view, const Pool& pool, const Weights& weights);

// The longest period that each job may have, computed once for a decision.
class SlowdownBound {
 public:
  // No bound if `most_slowdown` is 0.
  SlowdownBound(const Workload& workload, double most_slowdown);
  // True if each period is within the bound, or no longer than at present. Linear in the number of applications.
  bool holds(const ContentionModel& queue) const;

 private:
  std::vector<double> longest_s_;  // by job; empty: no bound
};

// Returns these sizes if the bound holds with them. Else it returns sizes with a half, a quarter, … down to 1/64 of the
// growth, or with none. The bound is `view.most_slowdown`; 0: none.
Sizes within_bound(const CoreView& view, const Pool& pool, const Sizes& sizes);

}  // namespace hocket::policy
