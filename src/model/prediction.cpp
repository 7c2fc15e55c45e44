#include "model/prediction.hpp"

#include <algorithm>

#include "base/saturating.hpp"

namespace hocket::model {
namespace {

constexpr double coverage = 2;     // standard deviations
constexpr double longest_s = 1e9;  // what is further away stays within the range of Time

Estimate estimate(const MeanSpread& shown) { return {to_s(shown.mean), coverage * to_s(shown.spread)}; }

// What was shown at one size, by the ratio of the curve's times there and here. Relative uncertainties add up.
Estimate scaled(const Estimate& shown, const Estimate& there, const Estimate& here) {
  if (there.value <= 0) return shown;  // the curve knows nothing of it
  const double value = shown.value * here.value / there.value;
  const double relative = shown.value > 0 ? shown.uncertainty / shown.value : 0;
  return {value, value * relative + shown.value * here.uncertainty / there.value};
}

Pace shown_at(const Rhythm& rhythm) { return {rhythm.iterations, estimate(rhythm.computing), estimate(rhythm.io)}; }

// The rhythm at its present size, from the curve where it has not shown it yet.
Rhythm present_rhythm(const Application& application) {
  const IoHistory& history = application.history;
  const std::int64_t processes = application.computing_processes();
  const bool changed = application.malleability.malleable && history.present().processes != processes &&
                       application.expansion.return_at_iteration == 0;
  if (!changed && history.present().periods > 0) return history.present();
  const auto expected = pace(application, changed ? processes : history.present().processes);
  if (!expected) return {};
  const auto mean_spread = [](const Estimate& e) {
    return MeanSpread{from_s(std::min(e.value, longest_s)), from_s(std::min(e.uncertainty / coverage, longest_s))};
  };
  Rhythm rhythm;
  rhythm.processes = processes;
  rhythm.periods = std::max<std::size_t>(2, history.latest().periods);
  rhythm.iterations = expected->iterations;
  rhythm.computing = mean_spread(expected->compute);
  rhythm.io = mean_spread(expected->io);
  rhythm.period.mean = saturating_sum(rhythm.computing.mean, rhythm.io.mean);
  return rhythm;
}

// Whether the phase that a change of size was decided for is still to come; it is waited for during one period, as any.
bool awaited(const Application& application, const Forecast& next, Time now) {
  const Time start = application.expansion.start_after;
  return application.expansion.decision != 0 && start > application.history.last()->end && now - start <= next.step;
}

// The phase that has begun and is not reported yet is the first; the second follows its end.
void begin_now(Forecast& next, const Application& application, Time now) {
  const bool waits = application.activity == Activity::waiting;
  const Time end = std::max(now, saturating_sum(waits ? now : application.since, next.duration));
  const Duration computing = next.step - std::min(next.step, next.duration);
  next.first = application.since;
  next.first_duration = end - next.first;
  next.second = saturating_sum(end, computing);
}

std::optional<Forecast> forecast_of(const Application& application, Time now) {
  const PhaseRecord* last = application.history.last();
  if (last == nullptr) return std::nullopt;
  auto next = forecast(*last, present_rhythm(application), now);
  if (!next) return std::nullopt;
  if (application.activity != Activity::computing && application.since > last->end) {
    begin_now(*next, application, now);
  } else if (awaited(application, *next, now)) {
    next->first = application.expansion.start_after;
    next->second = saturating_sum(next->first, next->step);
  }
  return next;
}

PredictedPhase phase(const Forecast& next, std::int64_t i, Duration uncertainty) {
  PredictedPhase predicted = next.phase(i);
  if (uncertainty >= Duration{}) predicted.uncertainty = uncertainty;
  return predicted;
}

PredictedPhase widened(PredictedPhase phase) {
  phase.duration = saturating_sum(phase.duration, phase.uncertainty);
  return phase;
}

Time end_of(const PredictedPhase& phase) { return saturating_sum(phase.start, phase.duration); }

// Whoever is as likely to be anywhere in its period meets everybody and nobody.
bool is_predictable(const PredictedPhase& phase, const Forecast& next) { return phase.uncertainty < next.step / 2; }

// The first phase that can still be going on at `start`; one that cannot may come before it, as widths grow.
std::int64_t first_reaching(const Forecast& next, Time start, Duration uncertainty) {
  const Time second_ends = end_of(widened(phase(next, 1, uncertainty)));
  return second_ends >= start ? 0 : (start - second_ends) / next.step;
}

// The first of the phases to come that meets `mine`, widened.
std::optional<PredictedPhase> first_meeting(const Forecast& next, const PredictedPhase& mine, Duration uncertainty) {
  for (std::int64_t i = first_reaching(next, mine.start, uncertainty);; ++i) {
    const PredictedPhase theirs = phase(next, i, uncertainty);
    if (theirs.start >= end_of(mine) || !is_predictable(theirs, next)) return std::nullopt;
    if (end_of(widened(theirs)) > mine.start) return widened(theirs);
  }
}

}  // namespace

std::optional<Pace> pace(const Application& application, std::int64_t processes) {
  const IoHistory& history = application.history;
  if (history.latest().periods == 0 || processes <= 0) return std::nullopt;
  if (!application.malleability.malleable) {
    return processes == application.computing_processes() ? std::optional{shown_at(history.latest())} : std::nullopt;
  }
  if (history.present().processes == processes && history.present().periods > 0) return shown_at(history.present());
  if (const Rhythm shown = history.at_size(processes); shown.periods > 0) return shown_at(shown);

  const Rhythm& known = history.latest();
  const SpeedupCurve& curve = application.curve;
  if (curve.empty() || known.processes <= 0) return std::nullopt;
  const Pace shown = shown_at(known);
  return Pace{shown.iterations, scaled(shown.compute, curve.iteration(known.processes), curve.iteration(processes)),
              scaled(shown.io, curve.io(known.processes), curve.io(processes))};
}

std::vector<PredictedPhase> next_phases(const Application& application, Time now, Duration uncertainty,
                                        std::size_t count) {
  const auto next = forecast_of(application, now);
  if (!next) return {};
  std::vector<PredictedPhase> phases;
  phases.reserve(count);
  for (std::size_t i = 0; i < count; ++i) phases.push_back(phase(*next, static_cast<std::int64_t>(i), uncertainty));
  return phases;
}

std::vector<Conflict> conflicts(const Cluster& cluster, const Application& subject, Time now, Duration uncertainty,
                                std::optional<Time> shifted) {
  const auto of_subject = forecast_of(subject, now);
  if (!of_subject) return {};
  PredictedPhase mine = phase(*of_subject, 0, uncertainty);
  if (!is_predictable(mine, *of_subject)) return {};
  if (shifted) mine.start = *shifted;
  mine = widened(mine);

  std::vector<Conflict> found;
  for (const auto& [id, other] : cluster.applications()) {
    if (id == subject.id || other.target != subject.target) continue;
    const auto of_other = forecast_of(other, now);
    if (!of_other) continue;
    const auto theirs = first_meeting(*of_other, mine, uncertainty);
    if (!theirs) continue;
    const Time start = std::max(mine.start, theirs->start);
    found.push_back({&subject, &other, mine, *theirs, start, std::min(end_of(mine), end_of(*theirs)) - start});
  }
  std::stable_sort(found.begin(), found.end(), [](const Conflict& a, const Conflict& b) { return a.start < b.start; });
  return found;
}

}  // namespace hocket::model
