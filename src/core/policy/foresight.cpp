#include "policy/foresight.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace hocket::policy {
namespace {

double lost_waiting(const Phases& a, const Phases& b, double until_s) {
  const std::array jobs{&a, &b};
  std::array<double, 2> asks{a.first_s, b.first_s};
  double free_s = std::min(a.first_s, b.first_s);
  double lost_s = 0;
  while (true) {
    const std::size_t i = asks[0] <= asks[1] ? 0 : 1;
    if (asks[i] >= until_s) return lost_s;
    const double start_s = std::max(asks[i], free_s);
    lost_s += start_s - asks[i];
    free_s = start_s + jobs[i]->io_s;
    asks[i] = free_s + jobs[i]->compute_s;
  }
}

// Plays overlapping access, from event to event: the start or the end of a phase.
double lost_sharing(const Phases& a, const Phases& b, double until_s) {
  struct PhasePosition {
    const Phases* of;
    double next_s;      // start of its next phase, while it computes
    double left_s = 0;  // rest of its phase, alone; 0: it computes
  };
  std::array<PhasePosition, 2> at{PhasePosition{&a, a.first_s}, PhasePosition{&b, b.first_s}};
  double now_s = std::min(a.first_s, b.first_s);
  double lost_s = 0;
  while (true) {
    const bool both = at[0].left_s > 0 && at[1].left_s > 0;
    double step_s = std::numeric_limits<double>::infinity();
    const auto slower = [&](const PhasePosition& one) { return both ? std::max(1.0, one.of->slower) : 1.0; };
    for (const PhasePosition& one : at) {
      step_s = std::min(step_s, one.left_s > 0 ? one.left_s * slower(one) : one.next_s - now_s);
    }
    now_s += step_s;
    if (now_s >= until_s) return lost_s;
    for (PhasePosition& one : at) {
      const double pace = slower(one);
      if (one.left_s > 0) {
        const bool ends = one.left_s * pace <= step_s;
        lost_s += step_s - (ends ? one.left_s : step_s / pace);
        one.left_s = ends ? 0 : one.left_s - step_s / pace;
        if (ends) one.next_s = now_s + one.of->compute_s;
      } else if (one.next_s <= now_s) {
        one.left_s = one.of->io_s;
      }
    }
  }
}

}  // namespace

double lost_together(const Phases& a, const Phases& b, double until_s, bool exclusive) {
  if (!(a.io_s > 0 && b.io_s > 0 && a.compute_s > 0 && b.compute_s > 0)) return 0;
  return exclusive ? lost_waiting(a, b, until_s) : lost_sharing(a, b, until_s);
}

}  // namespace hocket::policy
