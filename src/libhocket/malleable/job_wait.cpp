// Control points that wait until a pending resize is complete: because the program asked for it, or because the
// iterations are used up.
#include <time.h>

#include "base/clock.hpp"
#include "malleable/job.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/end_job.hpp"
#include "mpi_shim/warn.hpp"

namespace hocket::runtime {

// Waits in rank 0, asleep, until a pending resize can proceed; the others wait for its decision. Decides nothing if no
// resize is pending, or if it cannot proceed by `until`. Collective.
MalleableJob::ControlPointDecision MalleableJob::await_decision(Time until) {
  constexpr timespec between_looks{0, 1'000'000};
  ControlPointDecision decision{ControlPointDecision::none};
  while (rank_ == 0) {
    decision = decide_about_resize();
    const bool is_pending = change_ || requested_ != 0;
    if (decision.kind != ControlPointDecision::none || !is_pending) break;
    if (node_now() >= until) {
      tell_too_late();
      break;
    }
    nanosleep(&between_looks, nullptr);
  }
  if (!mpi::broadcast(ours_, 0, &decision, sizeof decision)) end_job("MPI failed at a control point", true);
  return decision;
}

void MalleableJob::tell_too_late() const {
  warn(change_ ? "the processes of the resize to " + std::to_string(change_->targets) +
                     " are not ready in time: the program continues without them"
               : "hocketd has not answered in time whether the program may have " + std::to_string(requested_) +
                     " processes: it continues without them");
}

// Completes the pending resize, or returns go_on if there is none, or none that is ready within `limit`. Completes one
// only, since the processes that join reach their next control point by themselves. Collective.
ControlPointResult MalleableJob::finish_pending(Duration limit) {
  const Time until = node_now() + limit;
  if (change_) change_->mark = node_now();
  ControlPointResult state = ControlPointResult::go_on;
  while (state == ControlPointResult::go_on) {
    if (change_ && change_->moving) {
      watch_.expect(text_of_change(), settings_.limit);
      return complete(true);
    }
    const ControlPointDecision decision = await_decision(until);
    if (decision.kind == ControlPointDecision::none) break;
    state = follow(decision);
  }
  return state;
}

// Completes all resizes that are pending when the iterations are used up. Processes that join in one of them get here
// with their first call of next(), and so take part in the following ones. Collective.
ControlPointResult MalleableJob::finish_at_end() {
  ControlPointResult state = ControlPointResult::go_on;
  wait_ = std::max(wait_, settings_.wait_at_end);
  while (wait_ > Duration{} && state != ControlPointResult::leave) {
    const ControlPointResult last = finish_pending(wait_);
    if (last == ControlPointResult::go_on) break;
    state = last;
  }
  wait_ = {};
  return state;
}

}  // namespace hocket::runtime
