#include "model/prediction.hpp"

#include <algorithm>
#include <cmath>

#include "base/saturating.hpp"
#include "model/measures.hpp"

namespace hocket::model {
namespace {

// The numbers needed to judge the fit: periods at one size, and phases in which a cycle of four would be found.
constexpr std::size_t telling_periods = 2;
constexpr std::int64_t telling_phases = 13;

Estimate estimate(const MeanSpread& shown) { return {to_s(shown.mean), coverage * to_s(shown.spread)}; }

// Scales a value shown at one size by the ratio of the curve's times at both sizes. Relative uncertainties add up.
Estimate scaled(const Estimate& shown, const Estimate& there, const Estimate& here) {
  if (there.value <= 0) return shown;                             // the curve has no such time
  const double value = shown.value * (here.value / there.value);  // exactly the same value where the curve is flat
  const double relative = shown.value > 0 ? shown.uncertainty / shown.value : 0;
  return {value, value * relative + shown.value * here.uncertainty / there.value};
}

PeriodEstimate shown_at(const Rhythm& rhythm) {
  return {rhythm.iterations, estimate(rhythm.computing), estimate(rhythm.io)};
}

// Returns a nominal period of computing, from reports of iterations.
std::optional<PeriodEstimate> pace_of_iterations(const Application& application, std::int64_t processes) {
  const IterationTimes::MeasuredTimes known = application.iterations.latest();
  if (known.reports == 0) return std::nullopt;
  const double iterations = std::max(1.0, std::round(nominal_period_s / known.iteration_s));
  const auto period = [&](const IterationTimes::MeasuredTimes& shown) {
    return Estimate{iterations * shown.iteration_s, coverage * iterations * shown.spread_s};
  };
  const IterationTimes::MeasuredTimes shown = application.iterations.at_size(processes);
  if (shown.reports > 0) return PeriodEstimate{iterations, period(shown), {}, true};
  const SpeedupCurve& curve = application.curve;
  if (curve.empty()) return std::nullopt;
  return PeriodEstimate{
      iterations, scaled(period(known), curve.iteration(known.processes), curve.iteration(processes)), {}, true};
}

// Returns the rhythm `shown`, scaled to another size at which a period takes what is expected.
Rhythm scaled(const Rhythm& shown, const PeriodEstimate& expected, std::int64_t processes) {
  const auto time = [](double seconds) { return from_s(std::clamp(seconds, 0.0, longest_s)); };
  const auto part = [](const MeanSpread& one, const MeanSpread& all) {
    return all.mean > Duration{} ? to_s(one.mean) / to_s(all.mean) : 0;
  };
  const auto mean_spread = [&](const Estimate& all, double share) {
    return MeanSpread{time(share * all.value), time(share * all.uncertainty / coverage)};
  };
  Rhythm rhythm;
  rhythm.processes = processes;
  rhythm.periods = std::max<std::size_t>(2, shown.periods);
  rhythm.iterations = expected.iterations;
  rhythm.computing = mean_spread(expected.compute, 1);
  rhythm.io = mean_spread(expected.io, 1);
  rhythm.period.mean = saturating_sum(rhythm.computing.mean, rhythm.io.mean);
  rhythm.cycle = shown.cycle;
  for (CyclePhase& phase : rhythm.cycle) {
    const double computing = rhythm.cycle.size() == 1 ? 1 : part(phase.computing, shown.computing);
    const double io = rhythm.cycle.size() == 1 ? 1 : part(phase.io, shown.io);
    phase.computing = mean_spread(expected.compute, computing);
    phase.io = mean_spread(expected.io, io);
  }
  for (std::size_t i = 0; i < rhythm.cycle.size(); ++i) {
    const CyclePhase& next = rhythm.cycle[(i + 1) % rhythm.cycle.size()];
    rhythm.cycle[i].interval.mean = saturating_sum(rhythm.cycle[i].io.mean, next.computing.mean);
  }
  return rhythm;
}

// The future phases of an application, and the rhythm that they follow. Not copyable, because the forecast refers to
// the rhythm.
class FuturePhases {
 public:
  FuturePhases(const Application& application, Time now) {
    const PhaseRecord* last = application.history.last();
    if (last == nullptr) return;
    forecast_ = Forecast::after(last->end, rhythm_of(application), now);
    if (!forecast_) return;
    if (application.activity != Activity::computing && application.since > last->end) {
      begin_now(application, now);
    } else if (awaited(application, now)) {
      forecast_->move_first(application.expansion.start_after);
    }
  }
  FuturePhases(const FuturePhases&) = delete;
  FuturePhases& operator=(const FuturePhases&) = delete;

  explicit operator bool() const { return forecast_.has_value(); }
  const Forecast* operator->() const { return &*forecast_; }
  const Forecast& operator*() const { return *forecast_; }

 private:
  // Returns the rhythm at the present size. If the application has not shown it yet, it comes from the curve.
  const Rhythm& rhythm_of(const Application& application) {
    const IoHistory& history = application.history;
    const std::int64_t processes = application.computing_processes();
    const bool changed = application.malleability.malleable && history.present().processes != processes &&
                         application.expansion.return_at_iteration == 0;
    if (!changed && history.present().periods > 0) return history.present();
    if (history.latest().periods == 0) return expected_;  // times of iterations say nothing of phases
    const auto expected = pace(application, changed ? processes : history.present().processes);
    if (expected) expected_ = scaled(history.latest(), *expected, processes);
    return expected_;
  }

  // True if the phase for which a change of size was decided is still to come. Like any phase, it is expected for one
  // period.
  bool awaited(const Application& application, Time now) const {
    const Time start = application.expansion.start_after;
    return application.expansion.decision != 0 && start > application.history.last()->end &&
           now - start <= forecast_->step();
  }

  // Makes the phase that has begun, but is not reported yet, the first one. The second one follows its end.
  void begin_now(const Application& application, Time now) {
    forecast_->begin(application.since, application.target);
    const bool waits = application.activity == Activity::waiting;
    forecast_->end(std::max(now, saturating_sum(waits ? now : application.since, forecast_->usual_duration())));
  }

  Rhythm expected_;
  std::optional<Forecast> forecast_;
};

Forecast::Timing timing(const Forecast& next, std::int64_t i, Duration uncertainty) {
  Forecast::Timing timing = next.timing(i);
  if (uncertainty >= Duration{}) timing.uncertainty = uncertainty;
  return timing;
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
Time widened_end_of(const Forecast::Timing& phase) {
  return saturating_sum(saturating_sum(phase.start, phase.duration), phase.uncertainty);
}

// False if a phase is equally likely anywhere in the period, because then it would meet all others and none.
bool is_predictable(Duration uncertainty, const Forecast& next) { return uncertainty < next.step() / 2; }

// Returns a phase before which none can still be active at `start`. It may have ended by then, too, because widths
// grow.
std::int64_t first_reaching(const Forecast& next, Time start, Duration uncertainty) {
  Time ends{};  // latest end in the first cycle
  for (std::int64_t i = 1; i <= next.length(); ++i) ends = std::max(ends, widened_end_of(timing(next, i, uncertainty)));
  if (ends >= start) return 0;
  const std::int64_t periods = (start - ends) / next.step();
  return periods == 0 ? 0 : 1 + next.length() * (periods - 1);
}

// Returns the first future phase that meets `mine`, widened.
std::optional<PredictedPhase> first_meeting(const Forecast& next, const PredictedPhase& mine, Duration uncertainty) {
  const auto is_there = [&](std::int64_t i) { return next.target(i) == mine.target; };
  bool possible = false;
  for (std::int64_t i = 0; i < next.length(); ++i) possible |= is_there(i);
  if (!possible) return std::nullopt;
  for (std::int64_t i = first_reaching(next, mine.start, uncertainty);; ++i) {
    const Forecast::Timing theirs = timing(next, i, uncertainty);
    if (theirs.start >= end_of(mine) || !is_predictable(theirs.uncertainty, next)) return std::nullopt;
    if (is_there(i) && widened_end_of(theirs) > mine.start) return widened(phase(next, i, uncertainty));
  }
}

}  // namespace

std::optional<PeriodEstimate> pace(const Application& application, std::int64_t processes) {
  const IoHistory& history = application.history;
  if (processes <= 0) return std::nullopt;
  if (history.latest().periods == 0) return pace_of_iterations(application, processes);
  if (!application.malleability.malleable) {
    return processes == application.computing_processes() ? std::optional{shown_at(history.latest())} : std::nullopt;
  }
  if (history.present().processes == processes && history.present().periods > 0) return shown_at(history.present());
  if (const Rhythm shown = history.at_size(processes); shown.periods > 0) return shown_at(shown);

  const Rhythm& known = history.latest();
  const SpeedupCurve& curve = application.curve;
  if (curve.empty() || known.processes <= 0) return std::nullopt;
  const PeriodEstimate shown = shown_at(known);
  return PeriodEstimate{shown.iterations,
                        scaled(shown.compute, curve.iteration(known.processes), curve.iteration(processes)),
                        scaled(shown.io, curve.io(known.processes), curve.io(processes))};
}

std::string_view name_of(Fit fit) {
  switch (fit) {
    case Fit::learning: return "learning";
    case Fit::regular: return "regular";
    case Fit::irregular: return "irregular";
  }
  return "";
}

Fit fit(const Application& application) {
  const IoHistory& history = application.history;
  const PhaseRecord* last = history.last();
  if (last == nullptr || history.present().periods < telling_periods) return Fit::learning;
  const auto next = Forecast::after(last->end, history.present(), last->end);
  if (next && is_predictable(next->timing(0).uncertainty, *next)) return Fit::regular;
  return history.phases() < telling_phases ? Fit::learning : Fit::irregular;
}

std::vector<PredictedPhase> next_phases(const Application& application, Time now, Duration uncertainty,
                                        std::size_t count) {
  const FuturePhases next{application, now};
  if (!next) return {};
  std::vector<PredictedPhase> phases;
  phases.reserve(count);
  for (std::size_t i = 0; i < count; ++i) phases.push_back(phase(*next, static_cast<std::int64_t>(i), uncertainty));
  return phases;
}

std::vector<Conflict> conflicts(const Cluster& cluster, const Application& subject, Time now, Duration uncertainty,
                                std::optional<Time> shifted) {
  const FuturePhases of_subject{subject, now};
  if (!of_subject) return {};
  PredictedPhase mine = phase(*of_subject, 0, uncertainty);
  if (!is_predictable(mine.uncertainty, *of_subject)) return {};
  if (shifted) mine.start = *shifted;
  mine = widened(mine);

  std::vector<Conflict> found;
  for (const auto& [id, other] : cluster.applications()) {
    if (id == subject.id) continue;
    const FuturePhases of_other{other, now};
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
