// Period coupling makes the I/O period of one application a multiple of another's (CLARISSE+FlexMPI, section 4.2.2,
// Algorithm 4). If I/O phases of the two are predicted to meet, the application with the longer period gets more
// processes permanently. That may take several steps. Once the periods fit, or if they cannot, phases are shifted.
#include <algorithm>
#include <cmath>

#include "policy/phase_shift.hpp"

namespace hocket::policy {
namespace {

using model::Application;
using model::Conflict;

// Part of the longer period by which it may miss the multiple. A phase shift then lasts for a hundred periods.
constexpr double fits_within = 0.01;

// Returns the predicted I/O period in seconds at that size; 0: not known.
double period_at(const Application& application, std::int64_t processes) {
  const auto pace = model::pace(application, processes);
  return pace ? pace->period_s() : 0;
}

// Returns the size, larger than the present one, whose period is nearest to `wanted_s`. Returns 0 if no size is nearer
// than the present one, or if too few cores are free.
std::int64_t obtain_processes(const CoreView& view, const Application& k, double wanted_s) {
  const std::int64_t present = k.computing_processes();
  const auto pace = model::pace(k, present);
  // The I/O time hardly falls with the size, so the computing has to save all of the difference.
  if (!pace || k.curve.empty() || pace->io.value >= wanted_s) return 0;
  const double speedup = pace->compute.value / (wanted_s - pace->io.value);
  const auto reaching = k.curve.processes_for(speedup, present, model::most_processes);
  if (!reaching) return 0;
  const auto miss = [&](std::int64_t processes) { return std::abs(period_at(k, processes) - wanted_s); };
  const std::int64_t nearest = miss(*reaching - 1) < miss(*reaching) ? *reaching - 1 : *reaching;
  if (nearest <= present || miss(nearest) >= miss(present)) return 0;
  return nearest - present <= view.cores.free() ? nearest : 0;
}

// Returns the change that makes the periods fit; nothing if they fit already, or if no worthwhile expansion does that.
std::optional<CoreChange> couple(const CoreView& view, const Conflict& conflict) {
  const double period_a = period_at(*conflict.subject, conflict.subject->computing_processes());
  const double period_b = period_at(*conflict.other, conflict.other->computing_processes());
  if (!(period_a > 0 && period_b > 0)) return std::nullopt;
  const Application& k = period_a > period_b ? *conflict.subject : *conflict.other;
  const Application& other = other_than(conflict, k);
  const double longer = std::max(period_a, period_b);
  const double shorter = std::min(period_a, period_b);
  const double multiple = std::round(longer / shorter);
  const double wanted_s = multiple * shorter;
  if (longer - wanted_s <= fits_within * longer || !can_resize(k)) return std::nullopt;
  const std::int64_t processes = obtain_processes(view, k, wanted_s);
  if (processes == 0) return std::nullopt;

  const std::int64_t present = k.computing_processes();
  const double period_after = period_at(k, processes);
  const auto stretch = stretch_ahead(k, view.now);
  const model::Estimate cost = resize_cost(k, present, processes, view.settings);
  const double saved_s = (stretch ? stretch->time_s : 0) * (1 - 1 / k.curve.speedup(present, processes)) - cost.value;
  CoreChange change;
  change.application = k.id;
  change.processes = processes;
  change.because_of = other.id;
  change.conflict = conflict.start;
  change.overlap = conflict.overlap;
  change.start_before = phase_of(conflict, k).start;
  change.start_after = change.start_before - duration_of(saved_s);
  change.period_after = duration_of(period_after);
  change.resize_spread = duration_of(cost.uncertainty);
  const ConflictLoss worth = worth_of(view, conflict, k, change.start_after, change.period_after);
  // The application keeps the cores and stays faster. Unlike with a shift, that gain is not given back.
  const double faster_s = (longer - period_after) * worth.periods;
  if (!worth.pays(cost.value - faster_s)) return std::nullopt;  // decide() tries a shift next
  change.reason = event::PeriodCoupling{facts_of(conflict, k, view.now), longer, period_after, shorter,
                                        static_cast<std::int64_t>(multiple)};
  return change;
}

CoreDecision decide(const CoreView& view, const event::Event& event, AppId subject) {
  const auto conflicts = conflicts_ahead(view, event, subject);
  CoreDecision decision;
  if (!conflicts.empty()) {
    auto change = couple(view, conflicts.front());
    if (change) return {{std::move(*change)}, {}};
    decision = shift_phases(view, conflicts);
  }
  leave_irregular(view, event, subject, decision);
  return decision;
}

}  // namespace

constexpr CorePolicy period_coupling{"period-coupling",
                                     "brings I/O periods to multiples of each other, then shifts phases",
                                     CoreKind::interference, decide};

}  // namespace hocket::policy
