#include "model/rhythm.hpp"

#include <algorithm>
#include <cmath>

#include "base/saturating.hpp"
#include "model/measures.hpp"

namespace hocket::model {
namespace {

// The relative spread of a period while only one was seen, because one period shows no spread.
constexpr double assumed_spread = 0.25;

// Returns t + n * step, limited to the range of Time.
Time later(Time t, std::int64_t n, Duration step) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(n, step.count(), &product)) product = INT64_MAX;
  return saturating_sum(t, Duration{product});
}

}  // namespace

std::optional<Forecast> Forecast::after(Time end, const Rhythm& rhythm, Time now) {
  if (rhythm.periods == 0 || rhythm.period.mean <= Duration{}) return std::nullopt;
  Forecast next;
  next.length_ = rhythm.cycle.size();
  next.step_ = rhythm.period.mean;
  next.periods_ = static_cast<double>(rhythm.periods);
  for (std::size_t i = 0; i < next.length_; ++i) {
    const CyclePhase& before = rhythm.cycle[(i + next.length_ - 1) % next.length_];
    next.phases_[i].known = &rhythm.cycle[i];
    next.phases_[i].spread_ns =
        rhythm.periods < 2 ? assumed_spread * ns_of(before.interval.mean) : ns_of(rhythm.cycle[i].computing.spread);
  }
  next.first_ = saturating_sum(end, rhythm.cycle[0].computing.mean);
  next.first_duration_ = rhythm.cycle[0].io.mean;
  const Duration late = now - next.first_;
  if (late > next.step_) {
    next.missed_ = late / next.step_;
    next.first_ = later(next.first_, next.missed_, next.step_);
  }
  next.second_ = saturating_sum(next.first_, next.interval());
  return next;
}

// Returns the time between the starts of the first and the second phase.
Duration Forecast::interval() const { return std::min(step_, phases_[0].known->interval.mean); }

Time Forecast::start_of(std::int64_t i) const {
  if (i == 0) return first_;
  Duration within{};
  for (std::int64_t j = 1; j <= (i - 1) % length(); ++j) {
    within = saturating_sum(within, phases_[place(j)].known->interval.mean);
  }
  return saturating_sum(later(second_, (i - 1) / length(), step_), std::min(within, step_));
}

Forecast::Timing Forecast::timing(std::int64_t i) const {
  // Each computing interval ahead adds its own variance. The error of its mean, spread² / periods, grows with the
  // distance.
  double variance = 0;
  for (std::int64_t j = 0; j < length(); ++j) {
    const auto times = static_cast<double>(missed_ + (i >= j ? (i - j) / length() + 1 : 0));
    const double spread = phases_[place(j)].spread_ns;
    variance += spread * spread * (times + times * times / periods_);
  }
  const Duration duration = i == 0 ? first_duration_ : phases_[place(i)].known->io.mean;
  return {start_of(i), duration, from_ns(coverage * std::sqrt(variance))};
}

PredictedPhase Forecast::phase(std::int64_t i) const {
  const Timing at = timing(i);
  const CyclePhase& known = *phases_[place(i)].known;
  return {at.start, at.duration, at.uncertainty, known.bytes, known.target};
}

std::int64_t Forecast::nearest(Time start, const std::string& target) const {
  std::int64_t nearest = 0;
  Duration least = Duration::max();
  for (std::int64_t i = 0; i < length(); ++i) {
    const Time expected = start_of(i);
    const Duration off = expected > start ? expected - start : start - expected;
    if (off >= least || (!target.empty() && this->target(i) != target)) continue;
    least = off;
    nearest = i;
  }
  return nearest;
}

void Forecast::begin(Time start, const std::string& target) {
  std::rotate(phases_.begin(), phases_.begin() + nearest(start, target), phases_.begin() + length());
  first_ = start;
}

void Forecast::end(Time end) {
  const Duration computing = interval() - std::min(interval(), usual_duration());
  first_duration_ = end - first_;
  second_ = saturating_sum(end, computing);
}

void Forecast::move_first(Time start) {
  first_ = start;
  second_ = saturating_sum(start, interval());
}

}  // namespace hocket::model
