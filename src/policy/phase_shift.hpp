// What the two policies against interference share: period coupling goes on with phase shifting when it has done its
// part (CLARISSE+FlexMPI, section 4.2).
//
// Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/prediction.hpp"
#include "policy/core_policy.hpp"

namespace hocket::policy {

// Eq. 2: T_orig / (T_orig - T_reconf), relative to the present size. Nothing where more is to be saved than there is.
std::optional<double> needed_speedup(double original_s, double reduction_s);

// How far an application is between two I/O phases, in iterations and control points.
struct Stretch {
  std::int64_t begin = 0;  // the next control point (Iter_reconf1)
  std::int64_t end = 0;    // the last one before its next I/O phase (Iter_reconf2)
  double time_s = 0;       // from one to the other at its present size (T_orig)
};
// Nothing where no control point is left between, or its iterations are not known.
std::optional<Stretch> stretch_ahead(const model::Application& application, Time now);

// Malleable, neither being resized nor expanded for a while, and its predictions have not kept missing.
bool can_resize(const model::Application& application);
// How long a resize stops the application: what its resizes took, else the setting.
model::Estimate resize_cost(const model::Application& application, std::int64_t from, std::int64_t to,
                            const CoreSettings& settings);

// What is lost to a conflict and those that follow from it, by both applications together, in seconds.
struct Worth {
  double lost_s = 0;   // as things are
  double left_s = 0;   // with the change
  double periods = 0;  // that were looked ahead
  double saved_s() const { return lost_s - left_s; }
};
// The application k of the conflict begins its next phase at `start_after` and then has that period (0: its own).
Worth worth_of(const CoreView& view, const model::Conflict& conflict, const model::Application& k, Time start_after,
               Duration period_after);
// Empty where the change saves more than `cost_s`; else why it is not made.
std::string why_not_worth(const Worth& worth, const model::Application& k, double cost_s);

// Held within 30 years, so that sums of a few stay within the range of Time.
Duration duration_of(double seconds);
// "3.4 s"
std::string seconds_text(double seconds);
// "the I/O phase of A2 in 92.3 s would meet that of A1 in 90.0 s for 3.6 s, 2.0 s of uncertainty included"
std::string conflict_text(const model::Conflict& conflict, const model::Application& first, Time now);

// The phase that `application` is in the conflict with, widened; it is one of the two.
const model::PredictedPhase& phase_of(const model::Conflict& conflict, const model::Application& application);
const model::Application& other_than(const model::Conflict& conflict, const model::Application& application);

// Says of an application whose I/O phases have no period that its conflicts are not seen; nothing where that is not so.
void leave_irregular(const CoreView& view, const event::Event& event, AppId subject, CoreDecision& decision);

// Of the subject's next phase, those that nothing is late for. A phase that has ended (IO_PHASE) is what makes the next
// one known; none at other events.
std::vector<model::Conflict> conflicts_ahead(const CoreView& view, const event::Event& event, AppId subject);

// Algorithm 3, for the conflicts of the subject's next phase.
CoreDecision shift_phases(const CoreView& view, const std::vector<model::Conflict>& conflicts);

}  // namespace hocket::policy
