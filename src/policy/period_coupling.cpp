// Period coupling (CLARISSE+FlexMPI, section 4.2.2, Algorithm 4): of two applications whose I/O phases meet, the one
// with the longer I/O period gets more processes for good, so that its period becomes a multiple of the other's. It
// takes as many steps as it needs; once the periods fit, or where they cannot be made to, phases are shifted.
#include <algorithm>
#include <cmath>

#include "policy/phase_shift.hpp"

namespace hocket::policy {
namespace {

using model::Application;
using model::Conflict;

// Share of the longer period by which it may miss the multiple: a phase shift lasts for a hundred periods then.
constexpr double fits_within = 0.01;

double period_at(const Application& application, std::int64_t processes) {
  const auto pace = model::pace(application, processes);
  return pace ? pace->period_s() : 0;
}

// The size, larger than the present one, that brings the period nearest to `wanted_s`; 0: none is nearer than the
// present one, or the cores are not there.
std::int64_t obtain_processes(const CoreView& view, const Application& k, double wanted_s) {
  const std::int64_t present = k.computing_processes();
  const auto pace = model::pace(k, present);
  // The I/O time hardly falls with the size, so what is to be saved is taken from the computing.
  if (!pace || k.curve.empty() || pace->io.value >= wanted_s) return 0;
  const double speedup = pace->compute.value / (wanted_s - pace->io.value);
  const auto reaching = k.curve.processes_for(speedup, present, model::most_processes);
  if (!reaching) return 0;
  const auto miss = [&](std::int64_t processes) { return std::abs(period_at(k, processes) - wanted_s); };
  const std::int64_t nearest = miss(*reaching - 1) < miss(*reaching) ? *reaching - 1 : *reaching;
  if (nearest <= present || miss(nearest) >= miss(present)) return 0;
  return nearest - present <= view.cores.free() ? nearest : 0;
}

// Nothing where the periods fit, or cannot be made to fit by expanding.
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
  const Worth worth = worth_of(view, conflict, k, change.start_after, change.period_after);
  // It keeps the cores, and is faster for good: unlike a shift's, that gain is not given back.
  const double faster_s = (longer - period_after) * worth.periods;
  if (!why_not_worth(worth, k, cost.value - faster_s).empty()) return std::nullopt;  // shifting is asked next
  const std::string times = multiple > 1 ? std::to_string(static_cast<std::int64_t>(multiple)) + " times " : "";
  change.text =
      conflict_text(conflict, k, view.now) + "; " + k.name + " grows for good from " + std::to_string(present) +
      " to " + std::to_string(processes) + " processes, so that its I/O period falls from " + seconds_text(longer) +
      " to " + seconds_text(period_after) + ", " + times + "that of " + other.name + " (" + seconds_text(shorter) + ")";
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
