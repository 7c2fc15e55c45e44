#include "model/application.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/saturating.hpp"

namespace hocket::model {
namespace {

constexpr Duration longest_report = std::chrono::hours{24 * 365};
constexpr Duration long_period = std::chrono::seconds{30};
constexpr std::int64_t most_iterations = std::int64_t{1} << 53;  // exact as a double
constexpr std::int64_t most_misses = 10;                         // policies then ignore predictions for 1023 phases

template <class Amount>
void add(Amount& sum, Amount more) {
  sum = saturating_sum(sum, more);
}

// Returns the reported times, clamped to what is possible.
PhaseRecord possible(const event::IoPhase& phase, Time now) {
  const auto within = [](Duration value, Duration most) { return std::clamp(value, Duration{}, most); };
  PhaseRecord record;
  record.end = std::clamp(phase.end, Time{}, now);
  record.start = std::clamp(phase.start, Time{}, record.end);
  const Duration length = record.end - record.start;
  record.io = within(phase.io, length);
  record.wait = within(phase.wait, length - record.io);
  const Duration before = record.start - Time{};
  record.cpu = within(phase.cpu, before);
  record.comm = within(phase.comm, before - record.cpu);
  return record;
}

SpentTimes possible_sums(const event::IoPhase& phase, Time now) {
  const auto within = [](Duration value, Duration most) { return std::clamp(value, Duration{}, most); };
  SpentTimes all;
  all.processes = std::min(phase.told_processes, most_processes);
  all.cpu_most = within(phase.cpu_most, now - Time{});
  all.comm_most = within(phase.comm_most, now - Time{});
  const auto of_all = [&](Duration most) { return Duration{saturating_product(most.count(), all.processes)}; };
  all.cpu = within(phase.all_cpu, of_all(all.cpu_most));
  all.comm = within(phase.all_comm, of_all(all.comm_most));
  return all;
}

// Replaces the CPU and communication times before a phase by means over all processes. It applies to a first report,
// and if the same number of processes reported before.
void take_mean(const SpentTimes& before, const SpentTimes& now, PhaseRecord& record) {
  if (before.processes != now.processes && before.processes != 0) return;
  const auto mean = [&](Duration from, Duration to) {
    return std::clamp((to - from) / now.processes, Duration{}, record.start - Time{});
  };
  record.cpu = mean(before.cpu, now.cpu);
  record.comm = mean(before.comm, now.comm);
}

}  // namespace

std::string_view name_of(Activity activity) {
  switch (activity) {
    case Activity::computing: return "computing";
    case Activity::waiting: return "waiting";
    case Activity::io: return "io";
  }
  return "";
}

std::int64_t Malleability::to_start(std::int64_t targets) const {
  if (method.starts_with("baseline")) return targets;
  return std::max<std::int64_t>(0, targets - processes - sleeping);
}

std::optional<Estimate> Malleability::cost_of(std::int64_t sources, std::int64_t targets) const {
  const bool is_present = sources == processes;  // for other sizes, the number of sleeping processes is unknown
  const std::int64_t started =
      is_present || method.starts_with("baseline") ? to_start(targets) : std::max<std::int64_t>(0, targets - sources);
  return costs.expected({sources, targets, started, method});
}

void Application::count_requests(std::int64_t waiting_change, std::int64_t granted_change, Time now) {
  waiting += waiting_change;
  granted += granted_change;
  const Activity next = granted > 0 ? Activity::io : waiting > 0 ? Activity::waiting : Activity::computing;
  if (next == activity) return;
  if (activity == Activity::waiting) add(waited, now - since);
  activity = next;
  since = now;
}

SpentTimes Application::spent() const {
  SpentTimes own;
  SpentTimes told;
  for (const Member* member : members) {
    if (member->last_phase < 0) continue;
    ++own.processes;
    add(own.cpu, member->cpu);
    add(own.comm, member->comm);
    own.cpu_most = std::max(own.cpu_most, member->cpu);
    own.comm_most = std::max(own.comm_most, member->comm);
    if (member->all.processes > told.processes) told = member->all;
  }
  return told.processes >= own.processes ? told : own;
}

Duration Application::waited_until(Time now) const {
  const Duration waiting_now = activity == Activity::waiting ? std::max(Duration{}, now - since) : Duration{};
  return saturating_sum(totals.wait, waited - waited_before + waiting_now);
}

const std::vector<NodeCount>& Application::runs_on() const {
  static const std::vector<NodeCount> unknown;
  std::int64_t reported = 0;
  for (const NodeCount& one : reported_nodes) reported = saturating_sum(reported, one.count);
  return reported == computing_processes() ? reported_nodes : unknown;
}

std::int64_t Application::of_all(std::int64_t bytes) const {
  std::int64_t all = 0;
  const std::int64_t computing = std::max<std::int64_t>(1, computing_processes());
  return bytes <= 0 || __builtin_mul_overflow(bytes, computing, &all) ? 0 : all;
}

void Application::add_phase(const event::IoPhase& phase, Time now, Member* member) {
  const PhaseRecord record = possible(phase, now);
  busy.add(parts_of(phase, record.start, record.end));
  if (!phase.of_one_process) add_to_history(phase, record, member);
  totals.io = busy.all().io;
  totals.wait = busy.all().wait;
  waited_before = waited;
  if (member != nullptr) {
    add(member->cpu, record.cpu);
    add(member->comm, record.comm);
  }
  add(totals.bytes_read, std::max<std::int64_t>(0, phase.bytes_read));
  add(totals.bytes_written, std::max<std::int64_t>(0, phase.bytes_written));
}

void Application::add_to_history(const event::IoPhase& phase, PhaseRecord record, Member* member) {
  // The history merges this report with its last phase if they overlap, so busy time is measured over both.
  const PhaseRecord* last = history.last();
  const bool joins = last != nullptr && record.start < last->end && record.end >= last->start;
  const BusyTime::Times whole = busy.between(joins ? std::min(last->start, record.start) : record.start,
                                             joins ? std::max(last->end, record.end) : record.end);
  record.io = whole.io;
  record.wait = whole.wait;
  const bool speaks_for_all = member == nullptr || member->processes > 0;
  const auto moved = [&](std::int64_t bytes) {
    return speaks_for_all ? of_all(bytes) : std::max<std::int64_t>(0, bytes);
  };
  record.written = moved(phase.bytes_written);
  record.bytes = saturating_sum(moved(phase.bytes_read), record.written);
  record.target = phase.target.empty() ? target : phase.target;
  if (malleability.malleable) {  // others have one size, whatever their members report
    record.processes = phase.processes > 0 ? std::min(phase.processes, most_processes) : malleability.processes;
    record.iteration = std::clamp<std::int64_t>(phase.iteration, -1, most_iterations);
    record.resized = malleability.reconfigurations != reconfigurations_before;
    reconfigurations_before = malleability.reconfigurations;
    malleability.iteration = std::max(malleability.iteration, record.iteration);
    if (phase.control_every > 0) malleability.control_every = std::min(phase.control_every, most_iterations);
    count_flop(phase.flop, record.iteration);
  }
  if (member != nullptr && phase.told_processes > 0) {
    const SpentTimes before = std::exchange(member->all, possible_sums(phase, record.end));
    if (!record.resized && member->all.processes == computing_processes()) take_mean(before, member->all, record);
  }
  history.add(record);
  add_to_curve();
}

void Application::add_iterations(const event::Iterations& said) {
  const std::int64_t computing = std::min(said.processes, most_processes);
  if (!malleability.malleable || computing < 1 || computing != malleability.processes) return;
  if (said.iterations < 1 || said.iterations > most_iterations) return;
  malleability.iteration = std::max(malleability.iteration, std::min(said.iteration, most_iterations));
  if (said.control_every > 0) malleability.control_every = std::min(said.control_every, most_iterations);
  const auto within = [](Duration value, Duration most) { return std::clamp(value, Duration{}, most); };
  const Duration elapsed = within(said.elapsed, longest_report);
  const Duration comm = within(said.comm, elapsed);
  const double taken_s = to_s(comm) + to_s(within(said.cpu, elapsed - comm));
  if (!(taken_s > 0)) return;
  const auto count = static_cast<double>(said.iterations);
  iterations.add(computing, taken_s / count, to_s(comm) / count);
  if (!lives_by_iterations()) return;
  const IterationTimes::MeasuredTimes shown = iterations.at_size(computing);
  if (shown.reports == 0) return;
  // I/O time comes from the curve or the history, because a report of iterations contains none.
  const double io_s = curve.empty() ? to_s(history.duration().mean) : curve.io(computing).value;
  add_to_curve({computing, shown.iteration_s, shown.spread_s, io_s, 0, shown.reports, shown.comm_s});
}

bool Application::lives_by_iterations() const {
  const Rhythm& shown = history.latest();
  return shown.periods == 0 || shown.period.mean > long_period;
}

void Application::count_flop(double since_last_phase, std::int64_t iteration) {
  const PhaseRecord* before = history.last();
  if (before == nullptr || before->iteration < 0 || iteration <= before->iteration) return;
  learn_flop(since_last_phase / static_cast<double>(iteration - before->iteration), FlopSource::counters);
}

void Application::learn_flop(double per_iteration, FlopSource source) {
  if (!replaces(flop_source, source, per_iteration)) return;
  flop_per_iteration = per_iteration;
  flop_source = source;
}

void Application::judge(bool met) {
  if (met) {
    reliance.misses /= 2;
    return;
  }
  reliance.misses = std::min(reliance.misses + 1, most_misses);
  reliance.until_phases = history.phases() + (std::int64_t{1} << reliance.misses) - 1;
}

// Adds the measurements at the present size to the curve. A curve from a profile stays as it is. It may belong to
// another input, and points that do not fit together would look like a speedup (`pace` brings the two together).
void Application::add_to_curve() {
  if (history.last()->iteration < 0) return;
  const Rhythm& shown = history.present();
  if (shown.iterations <= 0 || shown.processes <= 0) return;
  CurvePoint point;
  point.processes = shown.processes;
  point.iteration_s = to_s(shown.computing.mean) / shown.iterations;
  point.iteration_spread_s = to_s(shown.computing.spread) / shown.iterations;
  point.io_s = to_s(shown.io.mean);
  point.io_spread_s = to_s(shown.io.spread);
  point.samples = static_cast<std::int64_t>(shown.periods);
  point.comm_s = std::min(to_s(shown.communication.mean) / shown.iterations, point.iteration_s);
  add_to_curve(point);
}

void Application::add_to_curve(const CurvePoint& point) {
  extension.shows(point);
  if (!curve.empty() && !curve_is_seen) return;
  if (curve.replace(point).ok()) curve_is_seen = true;  // an impossible point is left out
}

}  // namespace hocket::model
