#include "model/io_history.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/saturating.hpp"

namespace hocket::model {
namespace {

// Two standard deviations: 19 of 20 phases start within them if periods are spread normally.
constexpr double coverage = 2;
// One period says nothing of the spread; a quarter of it is assumed until a second one was seen.
constexpr double assumed_spread = 0.25;

Duration from_ns(double ns) {
  constexpr double most = 4e18;  // within int64
  return Duration{static_cast<std::int64_t>(std::clamp(ns, -most, most))};
}

double ns_of(Duration d) { return static_cast<double>(d.count()); }

// Values of one quantity, the newest first.
class Values {
 public:
  void add(Duration value) { values_[count_++] = ns_of(value); }
  MeanSpread mean_spread() const;

 private:
  static constexpr std::size_t judges = 5;   // the newest ones, whose median is what is usual now
  static constexpr std::size_t changed = 3;  // so many unusual ones in a row were another time
  using Ring = std::array<double, IoHistory::capacity>;

  template <class Counts>
  static MeanSpread mean_spread(const Ring& values, std::size_t count, const Counts& counts);

  Ring values_{};
  std::size_t count_ = 0;
};

double median(std::array<double, 5> values) {
  std::nth_element(values.begin(), values.begin() + 2, values.end());
  return values[2];
}

template <class Counts>
MeanSpread Values::mean_spread(const Ring& values, std::size_t count, const Counts& counts) {
  double sum = 0;
  double used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!counts(values[i])) continue;
    sum += values[i];
    used += 1;
  }
  if (used == 0) return {};
  const double mean = sum / used;
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (counts(values[i])) squares += (values[i] - mean) * (values[i] - mean);
  }
  return {from_ns(mean), from_ns(used < 2 ? 0 : std::sqrt(squares / (used - 1)))};
}

MeanSpread Values::mean_spread() const {
  const auto all = [](double) { return true; };
  if (count_ < judges) return mean_spread(values_, count_, all);

  std::array<double, judges> newest{};
  std::copy_n(values_.begin(), judges, newest.begin());
  const double usual = median(newest);
  for (double& value : newest) value = std::abs(value - usual);
  // Far is what five standard deviations and a quarter are not enough for (7.4 median deviations are five standard
  // ones).
  const double far = std::max(0.25 * std::abs(usual), 7.4 * median(newest));
  const auto near = [&](double value) { return std::abs(value - usual) <= far; };

  std::size_t count = count_;
  std::size_t unusual = 0;
  std::size_t in_a_row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    in_a_row = near(values_[i]) ? 0 : in_a_row + 1;
    unusual += in_a_row > 0;
    if (in_a_row < changed) continue;
    count = i + 1 - changed;
    unusual -= changed;
  }
  // Many unusual ones are no mishaps but how the application is.
  return unusual * 4 > count ? mean_spread(values_, count, all) : mean_spread(values_, count, near);
}

// t + n * step, held at the end of time.
Time later(Time t, std::int64_t n, Duration step) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(n, step.count(), &product)) product = INT64_MAX;
  return saturating_sum(t, Duration{product});
}

}  // namespace

PredictedPhase Forecast::phase(std::int64_t i) const {
  // Each period ahead adds its own variance; the error of the mean, spread² / periods, grows with the distance.
  const auto k = static_cast<double>(ahead + i);
  const Duration uncertainty = from_ns(coverage * ns_of(spread) * std::sqrt(k + k * k / periods));
  if (i == 0) return {first, first_duration, uncertainty};
  return {later(second, i - 1, step), duration, uncertainty};
}

std::optional<Forecast> forecast(const PhaseRecord& last, const Rhythm& rhythm, Time now) {
  if (rhythm.periods == 0 || rhythm.period.mean <= Duration{}) return std::nullopt;
  Forecast next;
  next.step = rhythm.period.mean;
  next.duration = next.first_duration = rhythm.io.mean;
  next.periods = static_cast<double>(rhythm.periods);
  next.spread = rhythm.periods < 2 ? from_ns(assumed_spread * ns_of(next.step)) : rhythm.computing.spread;
  next.first = saturating_sum(last.end, rhythm.computing.mean);
  const Duration late = now - next.first;
  if (late > next.step) {
    const std::int64_t missed = late / next.step;
    next.ahead += missed;
    next.first = later(next.first, missed, next.step);
  }
  next.second = saturating_sum(next.first, next.step);
  return next;
}

void IoHistory::add(const PhaseRecord& phase) {
  if (!join_last(phase)) {
    ++phases_;
    if (kept_.size() < capacity) {
      kept_.push_back(phase);
    } else {
      kept_[oldest_] = phase;
      oldest_ = (oldest_ + 1) % capacity;
    }
  }
  summary_.reset();
}

const IoHistory::Summary& IoHistory::summary() const {
  if (summary_) return *summary_;
  Summary& summary = summary_.emplace();
  if (kept_.empty()) return summary;
  for (const PhaseRecord& phase : kept_) {
    auto& sizes = summary.sizes;
    if (std::find(sizes.begin(), sizes.end(), phase.processes) == sizes.end()) sizes.push_back(phase.processes);
  }
  summary.present = measured_at(last()->processes);
  for (std::size_t i = kept_.size() - 1; i-- > 0;) {
    const std::int64_t processes = at(i).processes;
    if (!whole(i, processes)) continue;
    summary.latest = processes == summary.present.processes ? summary.present : measured_at(processes);
    break;
  }
  return summary;
}

bool IoHistory::whole(std::size_t i, std::int64_t processes) const {
  const PhaseRecord& next = at(i + 1);
  return at(i).processes == processes && next.processes == processes && !next.resized;
}

Rhythm IoHistory::at_size(std::int64_t processes) const {
  const auto& sizes = summary().sizes;
  if (std::find(sizes.begin(), sizes.end(), processes) != sizes.end()) return measured_at(processes);
  Rhythm nothing;
  nothing.processes = processes;
  return nothing;
}

Rhythm IoHistory::measured_at(std::int64_t processes) const {
  Rhythm rhythm;
  rhythm.processes = processes;
  Values period;
  Values computing;
  Values io;
  double iterations = 0;
  double counted = 0;
  for (std::size_t i = kept_.size(); i-- > 0;) {
    const PhaseRecord& phase = at(i);
    if (phase.processes == processes) io.add(phase.io);
    if (i + 1 == kept_.size() || !whole(i, processes)) continue;
    const PhaseRecord& next = at(i + 1);
    ++rhythm.periods;
    period.add(next.start - phase.start);
    computing.add(std::max(Duration{}, next.start - phase.end));
    if (phase.iteration < 0 || next.iteration <= phase.iteration) continue;
    iterations += static_cast<double>(next.iteration - phase.iteration);
    counted += 1;
  }
  rhythm.period = period.mean_spread();
  rhythm.computing = computing.mean_spread();
  rhythm.io = io.mean_spread();
  rhythm.iterations = counted > 0 ? iterations / counted : 0;
  return rhythm;
}

// True where `phase` is not a phase of its own.
bool IoHistory::join_last(const PhaseRecord& phase) {
  if (kept_.empty()) return false;
  const std::size_t newest = kept_.size() - 1;
  PhaseRecord& last = kept_[(oldest_ + newest) % kept_.size()];
  if (phase.start >= last.end && phase.start > last.start) return false;
  if (phase.end < last.start) return true;
  last.start = std::min(last.start, phase.start);
  if (newest > 0) last.start = std::max(last.start, at(newest - 1).end);
  last.end = std::max(last.end, phase.end);
  last.io = std::max(last.io, phase.io);
  last.wait = std::max(last.wait, phase.wait);
  last.cpu = std::max(last.cpu, phase.cpu);
  last.comm = std::max(last.comm, phase.comm);
  last.bytes = saturating_sum(last.bytes, phase.bytes);
  last.iteration = std::max(last.iteration, phase.iteration);
  last.processes = std::max(last.processes, phase.processes);
  last.resized |= phase.resized;
  return true;
}

double IoHistory::io_ratio() const {
  const Duration mean_period = period().mean;
  if (mean_period <= Duration{}) return 0;
  return std::min(1.0, ns_of(duration().mean) / ns_of(mean_period));
}

PeriodParts IoHistory::period_parts() const {
  if (present().periods == 0) return {};
  // A period runs from the start of a phase to the start of the next, so its I/O is that of the first of the two, and
  // its computing is what the second reports.
  Values cpu;
  Values comm;
  Values io;
  Values wait;
  for (std::size_t i = kept_.size() - 1; i-- > 0;) {
    if (!whole(i, present().processes)) continue;
    cpu.add(at(i + 1).cpu);
    comm.add(at(i + 1).comm);
    io.add(at(i).io);
    wait.add(at(i).wait);
  }
  PeriodParts parts;
  parts.cpu = cpu.mean_spread().mean;
  parts.comm = comm.mean_spread().mean;
  parts.io = io.mean_spread().mean;
  parts.wait = wait.mean_spread().mean;
  const double named = ns_of(parts.cpu) + ns_of(parts.comm) + ns_of(parts.io) + ns_of(parts.wait);
  parts.other = from_ns(std::max(0.0, ns_of(period().mean) - named));
  return parts;
}

std::vector<PredictedPhase> IoHistory::predict(Time now, std::size_t count) const {
  if (kept_.empty()) return {};
  const auto next = forecast(*last(), present(), now);
  if (!next) return {};
  std::vector<PredictedPhase> phases;
  phases.reserve(count);
  for (std::size_t i = 0; i < count; ++i) phases.push_back(next->phase(static_cast<std::int64_t>(i)));
  return phases;
}

}  // namespace hocket::model
