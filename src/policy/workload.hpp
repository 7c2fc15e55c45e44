// What all applications together ask of the targets, and how slow a change of sizes would make each of them: what
// `predictive` optimises, and the bound that all policies that share out cores keep to.
//
// An application that gets more processes comes to its target more often, and others wait for it, those too that
// nobody resizes. `most_slowdown` bounds that: no application's I/O period becomes longer than this share above what it
// is while each has the size that it was started with. Both are means of the model (contention.hpp); waiting for each
// other and sharing the bandwidth cost about the same in it, so that the latter period stands for an uncoordinated one.
//
// Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "policy/contention.hpp"
#include "policy/sharing.hpp"

namespace hocket::policy {

// Counts what the objective counts, of a period.
class Weights {
 public:
  explicit Weights(const CoreView& view);
  double of(const model::Application& application, const model::Pace& original) const {
    return flops_ ? original.iterations * application.flop_per_iteration : original.period_s();
  }
  bool flops() const { return flops_; }

 private:
  bool flops_;
};

// All applications whose times are known; those of the pool first, in its order.
struct Workload {
  static constexpr auto unknown = std::numeric_limits<std::size_t>::max();

  Contention queue;                  // at the present sizes
  Contention started;                // at the sizes that they were started with
  std::vector<double> spreads;       // of the computing times: standard deviation over mean
  std::vector<std::size_t> sharers;  // by sharer, the number of its job; or `unknown`
  std::size_t targets;
};
Workload workload_of(const CoreView& view, const Pool& pool, const Weights& weights);

class SlowdownBound {
 public:
  // `most_slowdown`: 0 is no bound.
  SlowdownBound(const Workload& workload, double most_slowdown);
  // Whether each period is within the bound, or no longer than at present. Costs the number of applications.
  bool holds(const Contention& queue) const;

 private:
  std::vector<double> longest_s_;  // by job; none where there is no bound
};

// These sizes where the bound holds with them, else with only a part of what they grow by. `most_slowdown`: as above.
Sizes within_bound(const CoreView& view, const Pool& pool, const Sizes& sizes);

}  // namespace hocket::policy
