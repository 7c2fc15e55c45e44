#include "model/io_history.hpp"

#include <algorithm>
#include <cmath>

#include "base/saturating.hpp"
#include "model/measures.hpp"
#include "model/robust.hpp"

namespace hocket::model {
namespace {

MeanSpread times_of(const Samples& samples) {
  const Moments moments = samples.moments();
  return {from_ns(moments.mean), from_ns(moments.spread)};
}

// Returns the iterations between two phases; negative if unknown.
double iterations_between(const PhaseRecord& before, const PhaseRecord& phase) {
  const bool known = before.iteration >= 0 && phase.iteration >= before.iteration;
  return known ? static_cast<double>(phase.iteration - before.iteration) : -1;
}

// Finds the value that more than half of the inputs have, if there is one (Boyer and Moore). It refers to its inputs.
class Majority {
 public:
  void add(const std::string& value) {
    if (votes_ == 0) value_ = &value;
    votes_ += *value_ == value ? 1 : -1;
  }
  std::string value() const { return value_ ? *value_ : std::string{}; }

 private:
  const std::string* value_ = nullptr;
  int votes_ = 0;
};

}  // namespace

void IoHistory::add(const PhaseRecord& phase) {
  if (!join_last(phase)) {
    ++phases_;
    kept_.push(phase);
  }
  summary_.reset();
}

const IoHistory::Summary& IoHistory::summary() const {
  if (summary_) return *summary_;
  Summary& summary = summary_.emplace();
  if (kept_.size() == 0) return summary;
  summary.cycle = find_cycle(kept_);
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    auto& sizes = summary.sizes;
    if (std::find(sizes.begin(), sizes.end(), kept_[i].processes) == sizes.end()) sizes.push_back(kept_[i].processes);
  }
  summary.present = measured_at(last()->processes);
  // The newest whole period decides which size is the latest.
  for (std::size_t i = kept_.size(); i-- > 0;) {
    const std::int64_t processes = kept_[i].processes;
    if (!whole_period(i, processes)) continue;
    summary.latest = processes == summary.present.processes ? summary.present : measured_at(processes);
    break;
  }
  return summary;
}

bool IoHistory::whole(std::size_t i, std::int64_t processes) const {
  const PhaseRecord& next = kept_[i + 1];
  return kept_[i].processes == processes && next.processes == processes && !next.resized && summary_->cycle.follows(i);
}

bool IoHistory::whole_period(std::size_t i, std::int64_t processes) const {
  const std::size_t end = i + summary_->cycle.length;
  if (end >= kept_.size()) return false;
  while (i < end && whole(i, processes)) ++i;
  return i == end;
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
  measure_periods(rhythm);
  const std::size_t length = summary_->cycle.length;
  rhythm.cycle.reserve(length);
  for (std::size_t place = 0; place < length; ++place) rhythm.cycle.push_back(measured_phase(place, processes));
  return rhythm;
}

// Returns the sum in nanoseconds over `count` records from `first` on.
template <class Quantity>
double IoHistory::sum(std::size_t first, std::size_t count, const Quantity& quantity) const {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i) sum += ns_of(quantity(i));
  return sum;
}

// Calls `use` with the first phase of each kept period that overlaps no other, the newest first.
template <class Use>
void IoHistory::each_period(std::int64_t processes, const Use& use) const {
  const std::size_t length = summary_->cycle.length;
  for (std::size_t end = kept_.size(); end > length;) {
    const std::size_t first = end - 1 - length;
    const bool found = whole_period(first, processes);
    if (found) use(first);
    end -= found ? length : 1;
  }
}

void IoHistory::measure_periods(Rhythm& rhythm) const {
  const std::size_t length = summary_->cycle.length;
  Samples period;
  Samples computing;
  Samples communication;
  Samples io;
  Samples iterations;
  each_period(rhythm.processes, [&](std::size_t first) {
    const std::size_t last = first + length;
    period.add(ns_of(kept_[last].start - kept_[first].start));
    computing.add(
        sum(first, length, [&](std::size_t i) { return std::max(Duration{}, kept_[i + 1].start - kept_[i].end); }));
    communication.add(sum(first + 1, length, [&](std::size_t i) { return kept_[i].comm; }));
    const double done = iterations_between(kept_[first], kept_[last]);
    if (done > 0) iterations.add(done);
  });
  // The I/O of a cycle is known as soon as the cycle ends, before the period does.
  const auto at_size = [&](std::size_t i) { return kept_[i].processes == rhythm.processes; };
  for (std::size_t end = kept_.size(); end >= length;) {
    std::size_t last = end - length;
    while (last + 1 < end && at_size(last) && summary_->cycle.follows(last)) ++last;
    const bool found = last + 1 == end && at_size(last);
    if (found) io.add(sum(end - length, length, [&](std::size_t i) { return kept_[i].io; }));
    end -= found ? length : 1;
  }
  rhythm.periods = period.count();
  rhythm.period = times_of(period);
  rhythm.computing = times_of(computing);
  rhythm.communication = times_of(communication);
  rhythm.io = times_of(io);
  rhythm.iterations = iterations.moments().mean;
}

CyclePhase IoHistory::measured_phase(std::size_t place, std::int64_t processes) const {
  const PhaseCycle& cycle = summary_->cycle;
  CyclePhase phase;
  Samples computing;
  Samples interval;
  Samples io;
  Samples iterations;
  Samples bytes;
  Majority target;
  for (std::size_t i = kept_.size(); i-- > 0;) {
    if (cycle.place[i] != place) continue;
    const PhaseRecord& one = kept_[i];
    bytes.add(static_cast<double>(one.bytes));
    target.add(one.target);
    if (one.processes == processes) io.add(ns_of(one.io));
    if (i + 1 < kept_.size() && whole(i, processes)) interval.add(ns_of(kept_[i + 1].start - one.start));
    if (i == 0 || !cycle.follows(i - 1)) continue;
    if (const double done = iterations_between(kept_[i - 1], one); done >= 0) iterations.add(done);
    if (whole(i - 1, processes)) computing.add(ns_of(std::max(Duration{}, one.start - kept_[i - 1].end)));
  }
  phase.computing = times_of(computing);
  phase.interval = times_of(interval);
  phase.io = times_of(io);
  if (iterations.count() > 0) phase.iterations = iterations.moments().mean;
  phase.bytes = from_ns(bytes.moments().mean).count();
  phase.target = target.value();
  return phase;
}

// Merges `phase` with the last one, or drops it as too late. Returns false if it is a phase of its own.
bool IoHistory::join_last(const PhaseRecord& phase) {
  if (kept_.size() == 0) return false;
  PhaseRecord& last = kept_.newest();
  if (phase.start >= last.end && phase.start > last.start) return false;
  if (phase.end < last.start) return true;
  last.start = std::min(last.start, phase.start);
  if (kept_.size() > 1) last.start = std::max(last.start, kept_[kept_.size() - 2].end);
  last.end = std::max(last.end, phase.end);
  last.io = std::max(last.io, phase.io);
  last.wait = std::max(last.wait, phase.wait);
  last.cpu = std::max(last.cpu, phase.cpu);
  last.comm = std::max(last.comm, phase.comm);
  last.bytes = saturating_sum(last.bytes, phase.bytes);
  last.written = saturating_sum(last.written, phase.written);
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
  // A period runs from the start of a phase to the start of the next. Its I/O is that of the first phase, and the
  // second phase reports its computing.
  Samples cpu;
  Samples comm;
  Samples io;
  Samples wait;
  each_period(present().processes, [&](std::size_t first) {
    const std::size_t length = summary_->cycle.length;
    cpu.add(sum(first + 1, length, [&](std::size_t i) { return kept_[i].cpu; }));
    comm.add(sum(first + 1, length, [&](std::size_t i) { return kept_[i].comm; }));
    io.add(sum(first, length, [&](std::size_t i) { return kept_[i].io; }));
    wait.add(sum(first, length, [&](std::size_t i) { return kept_[i].wait; }));
  });
  PeriodParts parts;
  parts.cpu = times_of(cpu).mean;
  parts.comm = times_of(comm).mean;
  parts.io = times_of(io).mean;
  parts.wait = times_of(wait).mean;
  const double named = ns_of(parts.cpu) + ns_of(parts.comm) + ns_of(parts.io) + ns_of(parts.wait);
  parts.other = from_ns(std::max(0.0, ns_of(period().mean) - named));
  return parts;
}

Duration IoHistory::io_of_last_cycle() const {
  const std::size_t count = std::min(kept_.size(), summary().cycle.length);
  return from_ns(sum(kept_.size() - count, count, [&](std::size_t i) { return kept_[i].io; }));
}

const CyclePhase* IoHistory::due(const std::string& target, Time began) const {
  if (kept_.size() == 0) return nullptr;
  const std::vector<CyclePhase>& cycle = present().cycle;
  if (cycle.size() == 1) return cycle.data();
  if (const auto next = Forecast::after(last()->end, present(), last()->end); next && began > last()->end) {
    return &cycle[static_cast<std::size_t>(next->nearest(began, target))];
  }
  const auto same =
      std::find_if(cycle.begin(), cycle.end(), [&](const CyclePhase& one) { return one.target == target; });
  return same == cycle.end() ? cycle.data() : &*same;
}

std::optional<PredictedPhase> IoHistory::upcoming(const std::string& target, Time began) const {
  const CyclePhase* phase = due(target, began);
  if (phase == nullptr) return std::nullopt;
  PredictedPhase predicted{last()->end, phase->io.mean, {}, phase->bytes, phase->target};
  if (const auto next = Forecast::after(last()->end, present(), last()->end)) {
    const PredictedPhase timed = next->phase(phase - present().cycle.data());
    predicted.start = timed.start;
    predicted.uncertainty = timed.uncertainty;
  }
  return predicted;
}

std::vector<PredictedPhase> IoHistory::predict(Time now, std::size_t count) const {
  if (kept_.size() == 0) return {};
  const auto next = Forecast::after(last()->end, present(), now);
  if (!next) return {};
  std::vector<PredictedPhase> phases;
  phases.reserve(count);
  for (std::size_t i = 0; i < count; ++i) phases.push_back(next->phase(static_cast<std::int64_t>(i)));
  return phases;
}

}  // namespace hocket::model
