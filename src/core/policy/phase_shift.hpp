// Declares what the two interference policies share. Period coupling continues with phase shifting when it has nothing
// more to couple (CLARISSE+FlexMPI, section 4.2). Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/prediction.hpp"
#include "policy/core_policy.hpp"

namespace hocket::policy {

// Returns the speedup over the present size that saves `reduction_s`: T_orig / (T_orig - T_reconf), Eq. 2. Returns
// nothing if the reduction is not smaller than the original time.
std::optional<double> needed_speedup(double original_s, double reduction_s);

// The control points that an application still passes before its next I/O phase, as iteration numbers.
struct ControlPointRange {
  std::int64_t begin = 0;  // the next control point (Iter_reconf1)
  std::int64_t end = 0;    // the last one before its next I/O phase (Iter_reconf2)
  double time_s = 0;       // from one to the other at its present size (T_orig)
};
// Returns nothing if fewer than two control points are left before the next phase, or if iterations are not known.
std::optional<ControlPointRange> stretch_ahead(const model::Application& application, Time now);

// True if a policy may resize the application now. It is malleable and connected, no resize or temporary expansion is
// under way, and its predictions have not missed repeatedly.
bool can_resize(const model::Application& application);
// Returns for how many seconds a resize stops the application: as its resizes did, else the setting.
model::Estimate resize_cost(const model::Application& application, std::int64_t from, std::int64_t to,
                            const CoreSettings& settings);

// The seconds that both applications together lose to a conflict and to those that follow from it.
struct ConflictLoss {
  double lost_s = 0;   // without the change
  double left_s = 0;   // with the change
  double periods = 0;  // I/O periods that were played through
  double saved_s() const { return lost_s - left_s; }
  bool pays(double cost_s) const { return saved_s() > cost_s; }
};
// Weighs a change of application k, one of the two in the conflict. With the change, k begins its next phase at
// `start_after` and then has the period `period_after` (0: its present one).
ConflictLoss worth_of(const CoreView& view, const model::Conflict& conflict, const model::Application& k,
                      Time start_after, Duration period_after);
// Converts seconds, clamped to 30 years either way, so that sums of a few stay within the range of Time.
Duration duration_of(double seconds);
// Returns the numbers of a conflict as application k sees it.
event::PhaseConflict facts_of(const model::Conflict& conflict, const model::Application& k, Time now);

// Returns the application's predicted phase in the conflict, widened; and the other of the two applications.
// Precondition: the application is one of the two.
const model::PredictedPhase& phase_of(const model::Conflict& conflict, const model::Application& application);
const model::Application& other_than(const model::Conflict& conflict, const model::Application& application);

// Adds to `decision`, on IO_PHASE, that no period fits the subject's phases, so that its conflicts stay unpredicted.
void leave_irregular(const CoreView& view, const event::Event& event, AppId subject, CoreDecision& decision);

// Returns the conflicts of the subject's next phase that begin after now, so that there is time to act. Returns none
// unless the event is IO_PHASE: only the end of a phase makes the next one known.
std::vector<model::Conflict> conflicts_ahead(const CoreView& view, const event::Event& event, AppId subject);

// Applies Algorithm 3 to the conflicts of the subject's next phase, and returns at most one change.
CoreDecision shift_phases(const CoreView& view, const std::vector<model::Conflict>& conflicts);

}  // namespace hocket::policy
