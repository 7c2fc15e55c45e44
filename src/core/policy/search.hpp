// The search compares plans for the applications that want a target: wait, interrupt, interfere or delay (CALCioM,
// sections III-A, 4, and IV-D), with any number of applications. `dynamic` and `cost` use it.
//
// Up to six applications are compared in all orders, more in the orders that are best for the usual metrics. Then the
// search compares how many have the target at once, and by how much the second is delayed. If each application has a
// latest end, plans that keep all of them come first, and else the plan that breaks them least. Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "policy/contenders.hpp"
#include "policy/plan.hpp"

namespace hocket::policy {

// The applications that want a target, and what each has left. Vectors correspond and list holders first.
struct Contest {
  std::vector<const Contender*> contenders;  // holders first
  std::vector<PhaseJob> jobs;                // of the contenders
  std::size_t holders = 0;
  bool interruptible = false;      // the single holder may be preempted
  std::vector<double> latest_s{};  // latest end of each, from now; empty: no bounds
};

// One comparison. Keeps references to its arguments, which must outlive it.
class Search {
 public:
  Search(const View& view, const Contest& contest);
  // Returns the best choice, and in `AccessDecision::costs` the best cost of each action. Call it once.
  AccessDecision decide();

 private:
  static constexpr double none = std::numeric_limits<double>::infinity();
  struct Candidate {
    double excess_s = none;  // beyond the bounds, summed over the jobs
    double cost = none;
    Plan plan;
  };

  void look_at(Candidate& best, Plan plan);
  bool is_better(const Candidate& one, const Candidate& other) const;
  bool is_allowed(const std::vector<std::size_t>& order) const;
  void look_at_orders();
  void look_at_order(std::vector<std::size_t> order);
  void look_at_sorted_orders();
  void look_at_overlaps(const std::vector<std::size_t>& order);
  void look_at_delays(const std::vector<std::size_t>& order);
  AccessDecision as_they_come() const;
  AccessDecision serve(const Candidate& best, std::string_view action) const;

  const View& view_;
  const Contest& contest_;
  const std::vector<PhaseJob> jobs_;  // of the contest, with what only metrics need
  std::vector<ExpectedPhase> expected_;
  Candidate wait_, interrupt_, interfere_, delay_;
};

}  // namespace hocket::policy
