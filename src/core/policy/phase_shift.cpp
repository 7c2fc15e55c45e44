// Phase shifting separates two I/O phases that are predicted to meet (CLARISSE+FlexMPI, section 4.2.1, Algorithm 3).
// One of the applications gets more processes for a while, so that its phase is over before the other's begins.
#include "policy/phase_shift.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/saturating.hpp"
#include "policy/foresight.hpp"

namespace hocket::policy {
namespace {

using model::Application;
using model::Conflict;
using model::Estimate;
using model::PredictedPhase;

// Periods that differ by less count as equal: the mean of a few periods is not known better.
constexpr double equal_within = 0.02;
// Two periods are similar if the shorter is at least this part of the longer.
constexpr double similar_from = 0.75;
// Number of conflicts of one phase that are tried, the earliest first, until one can be avoided.
constexpr std::size_t most_tried = 3;
// Steps of the search for a size. Each uses the resize costs of the size that the step before found.
constexpr int most_steps = 8;
// Longest horizon over which a change is weighed.
constexpr double most_periods = 100;
// Errors of the predicted distance between the two phases, in parts of the uncertainty, with their probabilities. They
// sample a normal distribution of which the uncertainty is two standard deviations.
constexpr std::array<std::pair<double, double>, 5> errors{
    {{-1, 0.0545}, {-0.5, 0.2442}, {0, 0.4026}, {0.5, 0.2442}, {1, 0.0545}}};

// Returns the I/O period in seconds at the present size; 0: not known.
double period_of(const Application& application) {
  const auto pace = model::pace(application, application.computing_processes());
  return pace ? pace->period_s() : 0;
}

// Chooses the application to resize (select_application() in the paper). Of two with similar periods it is the one with
// the shorter period, because it will be ever further ahead of the other. Else it is the one whose phase comes first,
// because it has less to shift.
const Application& select_application(const Conflict& conflict) {
  const Application& a = *conflict.subject;
  const Application& b = *conflict.other;
  const double period_a = period_of(a);
  const double period_b = period_of(b);
  const double ratio = std::min(period_a, period_b) / std::max(period_a, period_b);
  if (ratio >= similar_from && ratio < 1 - equal_within) return period_a < period_b ? a : b;
  return conflict.of_other.start < conflict.of_subject.start ? b : a;
}

// A change planned for application k. If no change is possible or worthwhile, `obstacle` says why.
struct PlannedChange {
  CoreChange change;
  event::Reason obstacle;
};

// Returns the fewest processes with that speedup over the present size; 0: `obstacle` says why.
std::int64_t obtain_processes(const CoreView& view, const Application& k, double speedup, event::Reason& obstacle) {
  const std::int64_t present = k.computing_processes();
  if (k.curve.empty()) {
    obstacle = event::because(event::circumstance::unknown_times);
    return 0;
  }
  const auto processes = k.curve.processes_for(speedup, present, view.settings.limit_of(k));
  if (!processes) {
    double best = 1;
    for (const auto& point : k.curve.points()) best = std::max(best, k.curve.speedup(present, point.processes));
    obstacle = event::SpeedupMissing{speedup, best};
    return 0;
  }
  const std::int64_t free = view.cores.free_for(k.id);
  if (*processes - present > free) {
    obstacle = event::CoresMissing{*processes - present, free};
    return 0;
  }
  return *processes;
}

// Returns the cost of growing to that size and of returning from it, as a shift does both.
Estimate both_resizes(const CoreView& view, const Application& k, std::int64_t processes) {
  const std::int64_t present = k.computing_processes();
  const Estimate out = resize_cost(k, present, processes, view.settings);
  const Estimate in = resize_cost(k, processes, present, view.settings);
  return {out.value + in.value, std::hypot(out.uncertainty, in.uncertainty)};
}

// Finds the fewest processes with which k saves `shift_s` beyond the cost of its resizes. That cost may depend on the
// size, so the search repeats until the size stays the same.
struct Size {
  std::int64_t processes = 0;  // 0: `obstacle` says why
  Estimate overhead;
};
Size find_size(const CoreView& view, const Application& k, const ControlPointRange& stretch, double shift_s,
               event::Reason& obstacle) {
  Size size{0, both_resizes(view, k, k.computing_processes() + 1)};
  for (int step = 0; step < most_steps; ++step) {
    const double reduction_s = shift_s + size.overhead.value + size.overhead.uncertainty;  // T_reconf
    const auto speedup = needed_speedup(stretch.time_s, reduction_s);
    if (!speedup) {
      obstacle = event::SavingTooLarge{reduction_s, stretch.time_s};
      return {};
    }
    const std::int64_t before = size.processes;
    size.processes = std::max(before, obtain_processes(view, k, *speedup, obstacle));
    if (!is_none(obstacle)) return {};
    if (size.processes == before) return size;
    size.overhead = both_resizes(view, k, size.processes);
  }
  obstacle = event::because(event::circumstance::cost_grows);
  return {};
}

// Plans the shift of application k out of the conflict: its size, its return, and whether it is worth its cost.
PlannedChange plan(const CoreView& view, const Conflict& conflict, const Application& k) {
  PlannedChange plan;
  const Application& other = other_than(conflict, k);
  const PredictedPhase& own = phase_of(conflict, k);
  const PredictedPhase& theirs = phase_of(conflict, other);

  const auto stretch = stretch_ahead(k, view.now);
  if (!stretch) {
    plan.obstacle = event::because(event::circumstance::no_control_points);
    return plan;
  }
  // T_shift is the same whichever phase comes first: k's phase has to end when the other's begins. The end of k's phase
  // is widened, so the shift includes the uncertainty.
  const Duration shift = saturating_sum(own.start, own.duration) - theirs.start;
  const auto [processes, overhead] = find_size(view, k, *stretch, to_s(shift), plan.obstacle);
  if (processes == 0) return plan;

  const double saved_s =
      stretch->time_s * (1 - 1 / k.curve.speedup(k.computing_processes(), processes)) - overhead.value;
  CoreChange& change = plan.change;
  change.application = k.id;
  change.processes = processes;
  change.return_at_iteration = stretch->end;
  change.start_before = own.start;
  change.start_after = own.start - std::max(shift, duration_of(saved_s));  // rounding must not make it too late
  change.resize_spread = duration_of(overhead.uncertainty);

  const ConflictLoss worth = worth_of(view, conflict, k, change.start_after, {});
  if (!worth.pays(overhead.value)) {
    plan.obstacle = event::NotWorthIt{overhead.value, std::max(0.0, worth.saved_s()), std::llround(worth.periods)};
    return plan;
  }
  // The shifted phase must not meet that of a third application.
  const auto third = model::conflicts(view.cluster, k, view.now, view.settings.uncertainty, change.start_after);
  if (!third.empty()) {
    plan.obstacle = event::ThirdConflict{saved_s, third.front().other->name};
    return plan;
  }
  change.reason = event::PhaseShift{facts_of(conflict, k, view.now),
                                    stretch->end - stretch->begin,
                                    stretch->time_s - saved_s - overhead.value,
                                    saved_s,
                                    overhead.value,
                                    worth.saved_s()};
  return plan;
}

// The expected phases of an application, in seconds from now.
struct PhasesAhead {
  Phases phases;
  double uncertainty_s = 0;  // of the first start, plus or minus
  double step_s() const { return phases.io_s + phases.compute_s; }
};
std::optional<PhasesAhead> ahead(const CoreView& view, const Application& application) {
  const auto next = model::next_phases(application, view.now, view.settings.uncertainty, 1);
  // These periods leave out waits, which come from phases that meet and would hide that one overtakes the other.
  const auto pace = model::pace(application, application.computing_processes());
  if (next.empty() || !pace) return std::nullopt;
  const double slower = application.io.interference > 0 ? application.io.interference : view.together;
  return PhasesAhead{{to_s(next[0].start - view.now), pace->io.value, pace->compute.value, slower},
                     to_s(next[0].uncertainty)};
}

// Returns for how many periods to look ahead: as many as both applications were observed for, because nothing says that
// they run longer. The spread of their periods adds up, and ends the horizon where their phases are not known any more.
double periods_ahead(const Application& a, const Application& b, const PhasesAhead& of_a, const PhasesAhead& of_b) {
  const double seen = static_cast<double>(std::min(a.history.phases(), b.history.phases()));
  const double spread_s = std::hypot(to_s(a.history.period().spread), to_s(b.history.period().spread));
  const double known = std::min(of_a.step_s(), of_b.step_s()) / (4 * spread_s);  // half a period is two deviations
  return std::clamp(std::min(seen, known * known), 1.0, most_periods);
}

// Returns for how long application k and the other one are left alone after missed predictions.
event::NeitherResizable why_neither(const Application& k, const Application& other) {
  event::NeitherResizable why;
  const auto look = [](const Application& one, std::int64_t& misses, std::int64_t& phases) {
    if (!one.malleability.malleable || !one.is_left_alone()) return;
    misses = one.reliance.misses;
    phases = one.reliance.until_phases - one.history.phases();
  };
  look(k, why.own_misses, why.own_phases);
  look(other, why.other_misses, why.other_phases);
  return why;
}

CoreDecision decide(const CoreView& view, const event::Event& event, AppId subject) {
  CoreDecision decision = shift_phases(view, conflicts_ahead(view, event, subject));
  leave_irregular(view, event, subject, decision);
  return decision;
}

}  // namespace

std::optional<double> needed_speedup(double original_s, double reduction_s) {
  if (!(original_s > reduction_s)) return std::nullopt;
  return original_s / (original_s - reduction_s);
}

std::optional<ControlPointRange> stretch_ahead(const Application& application, Time now) {
  const model::PhaseRecord* last = application.history.last();
  const auto pace = model::pace(application, application.computing_processes());
  if (last == nullptr || last->iteration < 0 || !pace || pace->iterations < 1) return std::nullopt;
  const double iteration_s = pace->compute.value / pace->iterations;
  if (!(iteration_s > 0)) return std::nullopt;
  // A cycle of several phases has stretches of different lengths.
  const model::CyclePhase* next = application.history.due();
  const bool one_of_many = application.history.cycle_length() > 1 && next->iterations >= 0;
  const double iterations = one_of_many ? next->iterations : pace->iterations;

  const auto every = static_cast<double>(std::max<std::int64_t>(1, application.malleability.control_every));
  const double done = std::min(iterations, std::floor(std::max(0.0, to_s(now - last->end)) / iteration_s));
  const double begin = (std::floor(done / every) + 1) * every;
  const double end = std::floor(std::round(iterations) / every) * every;
  if (end <= begin) return std::nullopt;
  return ControlPointRange{last->iteration + static_cast<std::int64_t>(begin),
                           last->iteration + static_cast<std::int64_t>(end), (end - begin) * iteration_s};
}

bool can_resize(const Application& application) {
  const model::Malleability& state = application.malleability;
  return state.malleable && state.commanding && state.resizing_to == 0 && !application.expansion.is_temporary() &&
         !application.is_left_alone();
}

Estimate resize_cost(const Application& application, std::int64_t from, std::int64_t to, const CoreSettings& settings) {
  const auto measured = application.malleability.cost_of(from, to);
  return measured ? *measured : Estimate{to_s(settings.reconfiguration), 0};
}

ConflictLoss worth_of(const CoreView& view, const Conflict& conflict, const Application& k, Time start_after,
                      Duration period_after) {
  const Application& other = other_than(conflict, k);
  const auto mine = ahead(view, k);
  const auto theirs = ahead(view, other);
  if (!mine || !theirs) return {};
  Phases changed = mine->phases;
  changed.first_s = to_s(start_after - view.now);
  if (period_after > Duration{}) changed.compute_s = std::max(0.0, to_s(period_after) - changed.io_s);

  ConflictLoss worth;
  worth.periods = periods_ahead(k, other, *mine, *theirs);
  const double until_s = std::max(mine->phases.first_s, theirs->phases.first_s) + worth.periods * mine->step_s();
  const double uncertainty_s = std::hypot(mine->uncertainty_s, theirs->uncertainty_s);
  for (const auto& [away, weight] : errors) {
    Phases meets = theirs->phases;
    meets.first_s += away * uncertainty_s;
    const bool exclusive = view.together <= 0;
    worth.lost_s += weight * lost_together(mine->phases, meets, until_s, exclusive);
    worth.left_s += weight * lost_together(changed, meets, until_s, exclusive);
  }
  return worth;
}

Duration duration_of(double seconds) { return from_s(std::clamp(seconds, -1e9, 1e9)); }

event::PhaseConflict facts_of(const Conflict& conflict, const Application& k, Time now) {
  const PredictedPhase& own = phase_of(conflict, k);
  const PredictedPhase& theirs = phase_of(conflict, other_than(conflict, k));
  return {to_s(own.start - now), to_s(theirs.start - now), to_s(own.uncertainty)};
}

const PredictedPhase& phase_of(const Conflict& conflict, const Application& application) {
  return conflict.subject == &application ? conflict.of_subject : conflict.of_other;
}

const Application& other_than(const Conflict& conflict, const Application& application) {
  return conflict.subject == &application ? *conflict.other : *conflict.subject;
}

void leave_irregular(const CoreView& view, const event::Event& event, AppId subject, CoreDecision& decision) {
  const Application* application = view.cluster.find(subject);
  if (application == nullptr || !std::holds_alternative<event::IoPhase>(event.body)) return;
  if (model::fit(*application) != model::Fit::irregular) return;
  const model::MeanSpread period = application->history.period();
  const event::IrregularPhases reason{to_s(period.mean), to_s(period.spread)};
  decision.left_alone.push_back({.application = subject, .reason = reason, .once = true});
}

std::vector<Conflict> conflicts_ahead(const CoreView& view, const event::Event& event, AppId subject) {
  const Application* application = view.cluster.find(subject);
  if (application == nullptr || !std::holds_alternative<event::IoPhase>(event.body)) return {};
  auto conflicts = model::conflicts(view.cluster, *application, view.now, view.settings.uncertainty);
  std::erase_if(conflicts, [&view](const Conflict& conflict) { return conflict.start <= view.now; });
  return conflicts;
}

CoreDecision shift_phases(const CoreView& view, const std::vector<Conflict>& conflicts) {
  CoreDecision decision;
  std::size_t tried = 0;
  for (const Conflict& conflict : conflicts) {
    // A shift is under way already.
    if (conflict.subject->expansion.is_temporary() || conflict.other->expansion.is_temporary()) continue;
    if (++tried > most_tried) break;
    const Application* k = &select_application(conflict);
    if (!can_resize(*k)) k = &other_than(conflict, *k);
    const Application& other = other_than(conflict, *k);
    PlannedChange made;
    if (can_resize(*k)) {
      made = plan(view, conflict, *k);
    } else {
      made.obstacle = why_neither(*k, other);
    }
    if (is_none(made.obstacle)) {
      made.change.because_of = other.id;
      made.change.conflict = conflict.start;
      made.change.overlap = conflict.overlap;
      decision.changes.push_back(std::move(made.change));
      break;
    }
    // One reason is enough: that of the earliest conflict.
    if (!decision.left_alone.empty()) continue;
    decision.left_alone.push_back({.application = k->id,
                                   .because_of = other.id,
                                   .conflict = conflict.start,
                                   .overlap = conflict.overlap,
                                   .reason = facts_of(conflict, *k, view.now),
                                   .obstacle = std::move(made.obstacle)});
  }
  return decision;
}

constexpr CorePolicy phase_shift{"phase-shift", "before two I/O phases meet, runs one application faster for a while",
                                 CoreKind::interference, decide};

}  // namespace hocket::policy
