#include "model/io_history.hpp"

#include <algorithm>
#include <cmath>

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

// Of value(0) … value(count - 1), Durations.
template <class F>
MeanSpread mean_spread(std::size_t count, F value) {
  if (count == 0) return {};
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += ns_of(value(i));
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += std::pow(ns_of(value(i)) - mean, 2);
  const double spread = count < 2 ? 0 : std::sqrt(squares / static_cast<double>(count - 1));
  return {from_ns(mean), from_ns(spread)};
}

}  // namespace

void IoHistory::add(const PhaseRecord& phase) {
  if (join_last(phase)) return;
  ++phases_;
  if (kept_.size() < capacity) {
    kept_.push_back(phase);
  } else {
    kept_[oldest_] = phase;
    oldest_ = (oldest_ + 1) % capacity;
  }
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
  if (__builtin_add_overflow(last.bytes, phase.bytes, &last.bytes)) last.bytes = INT64_MAX;
  return true;
}

MeanSpread IoHistory::period() const {
  if (kept_.size() < 2) return {};
  return mean_spread(kept_.size() - 1, [this](std::size_t i) { return at(i + 1).start - at(i).start; });
}

MeanSpread IoHistory::duration() const {
  return mean_spread(kept_.size(), [this](std::size_t i) { return at(i).io; });
}

double IoHistory::io_ratio() const {
  const Duration mean_period = period().mean;
  if (mean_period <= Duration{}) return 0;
  return std::min(1.0, ns_of(duration().mean) / ns_of(mean_period));
}

PeriodParts IoHistory::period_parts() const {
  if (kept_.size() < 2) return {};
  // A period runs from the start of a phase to the start of the next, so its I/O is that of the first of the two, and
  // its computing is what the second reports.
  const std::size_t periods = kept_.size() - 1;
  PeriodParts parts;
  parts.cpu = mean_spread(periods, [this](std::size_t i) { return at(i + 1).cpu; }).mean;
  parts.comm = mean_spread(periods, [this](std::size_t i) { return at(i + 1).comm; }).mean;
  parts.io = mean_spread(periods, [this](std::size_t i) { return at(i).io; }).mean;
  parts.wait = mean_spread(periods, [this](std::size_t i) { return at(i).wait; }).mean;
  const double named = ns_of(parts.cpu) + ns_of(parts.comm) + ns_of(parts.io) + ns_of(parts.wait);
  parts.other = from_ns(std::max(0.0, ns_of(period().mean) - named));
  return parts;
}

std::vector<PredictedPhase> IoHistory::predict(Time now, std::size_t count) const {
  const MeanSpread measured = period();
  if (measured.mean <= Duration{}) return {};
  const auto periods = static_cast<double>(kept_.size() - 1);
  const double spread = periods < 2 ? assumed_spread * ns_of(measured.mean) : ns_of(measured.spread);
  const Duration phase_duration = duration().mean;

  std::int64_t ahead = 1;
  const Duration late = now - (last()->start + measured.mean);
  if (late > measured.mean) ahead += late / measured.mean;

  std::vector<PredictedPhase> phases;
  phases.reserve(count);
  for (std::size_t i = 0; i < count; ++i, ++ahead) {
    // Each period ahead adds its own variance; the error of the mean, spread² / periods, grows with the distance.
    const auto k = static_cast<double>(ahead);
    const double deviation = spread * std::sqrt(k + k * k / periods);
    phases.push_back({last()->start + ahead * measured.mean, phase_duration, from_ns(coverage * deviation)});
  }
  return phases;
}

}  // namespace hocket::model
