// The plans for those who want a target, compared: wait, interrupt, interfere or delay (CALCioM, sections III-A, 4, and
// IV-D), with any number of applications.
//
// Of up to six applications all orders are compared, of more those that are the best for the usual metrics; then how
// many have the target at once, and by how much the second one is delayed. With bounds on when each must have ended,
// plans within them come before all others, and of others the one that breaks them least.
//
// Pure.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "policy/contenders.hpp"
#include "policy/plan.hpp"

namespace hocket::policy {

// Applications that want a target, what is left for each, and what of it is to be decided.
struct Contest {
  std::vector<const Contender*> contenders;  // holders first
  std::vector<Job> jobs;                     // of them
  std::size_t holders = 0;
  bool interruptible = false;      // the one holder may be told to stop
  std::vector<double> latest_s{};  // when each is to have ended, from now; empty: no bounds
};

class Search {
 public:
  Search(const View& view, const Contest& contest);
  // The choice with the least cost, and what all of them cost.
  Decision decide();

 private:
  static constexpr double none = std::numeric_limits<double>::infinity();
  struct Candidate {
    double excess_s = none;  // beyond the bounds, summed
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
  Decision as_they_come() const;
  Decision serve(const Candidate& best, std::string_view action) const;

  const View& view_;
  const Contest& contest_;
  std::vector<Expected> expected_;
  Candidate wait_, interrupt_, interfere_, delay_;
};

}  // namespace hocket::policy
