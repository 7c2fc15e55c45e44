#include "sim/application.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/server_work.hpp"

namespace hocket::sim {
namespace {

// Relative error of the iteration times in a wrong profile.
constexpr double wrong_by = 0.3;
constexpr std::int64_t profile_samples = 10;
// Limits of the factor in a wrong announcement.
constexpr double least_announced = 0.3;
constexpr double most_announced = 3;

// Returns the number of the first part that ends at or after `done`, counted from 1. The tolerance keeps a rounding
// error from counting as a part.
double part_of(double done, double part_bytes) { return std::max(0.0, std::ceil(done / part_bytes - 1e-9)); }

Duration duration_of(double seconds) { return Duration{std::llround(seconds * 1e9)}; }

}  // namespace

SimulatedApplication::SimulatedApplication(const ApplicationSpec& spec, const std::vector<TargetSpec>& targets,
                                           std::uint64_t seed)
    : spec_(spec), targets_(targets), phases_(spec.phases), random_(seed, spec.name) {
  // A scenario without `phases` has one phase at the end of each period.
  if (phases_.empty() && spec.io_bytes > 0) {
    PhaseSpec only;
    only.bytes = spec.io_bytes;
    only.target = spec.target;
    only.target_index = spec.target_index;
    only.parts = spec.parts;
    only.part_numbers = spec.part_numbers;
    phases_.push_back(std::move(only));
  }
  next_phase_ = phases_.size();
  // One factor for the whole run: an application errs in one direction.
  if (spec.announces == Announces::wrong) {
    const double part = random_.uniform(RandomStream::announcement, 0);
    announced_factor_ = least_announced * std::pow(most_announced / least_announced, part);
  }
  set_processes(spec.processes);
  first_iteration_s_ = iteration_s_;
  result.name = spec.name;
  result.processes_first = result.processes_last = spec.processes;
}

void SimulatedApplication::set_processes(std::int64_t processes) {
  processes_ = processes;
  iteration_s_ = spec_.curve.iteration(processes).value;
}

double SimulatedApplication::most_bandwidth(std::int64_t processes, const PhaseSpec& phase) const {
  if (phase.cached) return spec_.cache_bytes_per_s;
  const TargetSpec& target = targets_[phase.target_index];
  double most = target.most_bandwidth() * target.fraction(phase.parts.size());
  if (spec_.io_bandwidth > 0) most = std::min(most, spec_.io_bandwidth);
  if (!spec_.io_curve.empty()) most = std::min(most, spec_.io_bytes / spec_.io_curve.iteration(processes).value);
  return most;
}

double SimulatedApplication::alone_s(double bytes, std::int64_t processes, const PhaseSpec& phase) const {
  const TargetSpec& target = targets_[phase.target_index];
  double rate = most_bandwidth(processes, phase);
  if (!phase.cached && spec_.request_bytes > 0) {
    const double of_an_operation = phase.bytes / static_cast<double>(phase.operations);
    rate = std::min(rate, rate_of_servers(target, of_an_operation, writers_of(processes), spec_.request_bytes));
  }
  // Alone, an application that forwards has its best number of servers.
  if (!phase.cached && !spec_.bandwidths.empty()) {
    const auto best = std::ranges::max(spec_.bandwidths, {}, &allocation::Choice::bandwidth);
    rate = std::min(rate, static_cast<double>(best.bandwidth));
  }
  const double fraction = target.fraction(phase.parts.size());
  const double disks = target.bandwidth * fraction;
  if (phase.cached || target.cache.bytes <= 0 || rate <= disks) return bytes / rate;
  const double until_full = rate * target.cache.bytes * fraction / (rate - disks);
  return std::min(bytes, until_full) / rate + std::max(0.0, bytes - until_full) / disks;
}

// ---- periods -----------------------------------------------------------------------------------------------------

void SimulatedApplication::begin_period() {
  const std::uint64_t number = periods_++;
  const std::int64_t every = spec_.iterations_per_phase;
  period_start_ = iteration_;
  period_end_ = std::min((iteration_ / every + 1) * every, spec_.iterations);
  const Troubles& troubles = spec_.troubles;
  const auto happens = [&](RandomStream stream, double chance) {
    return chance > 0 && random_.uniform(stream, 2 * number) < chance;
    // Even numbers decide if a fault occurs, odd ones by how much.
  };
  if (happens(RandomStream::period_change, troubles.period_change)) {
    pace_ = std::exp2(2 * random_.uniform(RandomStream::period_change, 2 * number + 1) - 1);
  }
  if (happens(RandomStream::death, troubles.death)) {
    const double part = random_.uniform(RandomStream::death, 2 * number + 1);
    // Death comes after at least one further iteration and by the end of the period.
    death_ = iteration_ + 1 + static_cast<std::int64_t>(part * static_cast<double>(period_end_ - iteration_));
    death_ = std::min(death_, period_end_);
  }
  factor_ = pace_;
  if (spec_.jitter > 0) factor_ *= jitter_factor(spec_.jitter, random_.normal(RandomStream::jitter, number).first);
  look_for_phase(0);
}

void SimulatedApplication::look_for_phase(std::size_t from) {
  operation_ = 0;
  for (next_phase_ = from; next_phase_ < phases_.size(); ++next_phase_) {
    const PhaseSpec& phase = phases_[next_phase_];
    const auto iterations = static_cast<double>(spec_.iterations_per_phase);
    // The last period may be shorter, and then lacks the phases after its end.
    phase_at_ = period_start_ + std::llround(phase.after * iterations);
    if (phase.bytes <= 0 || phase_at_ > period_end_) continue;
    // One number for each period and phase, so a skipped phase shifts no other random value.
    const std::uint64_t number = periods_ - 1 + (static_cast<std::uint64_t>(next_phase_) << 32U);
    const double chance = spec_.troubles.phase_skip;
    if (chance > 0 && random_.uniform(RandomStream::phase_skip, 2 * number) < chance) continue;
    phase_bytes_ = phase.bytes;
    if (spec_.io_jitter > 0) {
      phase_bytes_ *= jitter_factor(spec_.io_jitter, random_.normal(RandomStream::jitter, number).second);
    }
    return;
  }
}

void SimulatedApplication::operation_done(Duration io) {
  const PhaseSpec& present = phase();
  const double bytes = operation_bytes();
  result.io_s += to_s(io);
  // The time alone is at the first size, as the comparison is with an application that nobody resizes.
  result.io_alone_s += alone_s(bytes, spec_.processes, present);
  (present.reads ? result.bytes_read : result.bytes_written) += bytes;
  ++result.operations;
  if (++operation_ < present.operations) return;
  ++result.phases;
  look_for_phase(next_phase_ + 1);
}

std::int64_t SimulatedApplication::announced() const {
  // The bytes of completed operations are known exactly, so only the rest of the phase is announced.
  if (spec_.announces == Announces::nothing) return 0;
  const double moved = operation_bytes() * static_cast<double>(operation_);
  return static_cast<std::int64_t>(std::max(0.0, phase_bytes_ * announced_factor_ - moved));
}

SimulatedApplication::Parts SimulatedApplication::announced_parts() const {
  if (spec_.announces == Announces::nothing || spec_.grain == Grain::operation) return {};
  Parts parts{spec_.files * (phase().operations - operation_)};
  if (spec_.grain == Grain::file) return parts;
  const double file_bytes = operation_bytes() / static_cast<double>(spec_.files);
  parts.bytes_per_round = std::max<std::int64_t>(1, std::llround(std::min(spec_.round_bytes, file_bytes)));
  parts.rounds = static_cast<std::int64_t>(std::ceil(file_bytes / static_cast<double>(parts.bytes_per_round)));
  return parts;
}

Duration SimulatedApplication::gap() {
  const double seconds = operation_ == 0 ? phase().gap_s : phase().operation_gap_s;
  if (seconds <= 0) return {};
  double factor = 1;
  if (spec_.gap_jitter > 0) factor = jitter_factor(spec_.gap_jitter, random_.normal(RandomStream::gap, gaps_++).first);
  return duration_of(seconds * factor);
}

void SimulatedApplication::gap_done(Duration gap) {
  const double seconds = to_s(gap);
  result.compute_s += seconds;
  result.alone_s += seconds;
  process_seconds_ += seconds * static_cast<double>(processes_);
}

double SimulatedApplication::stop_after(double done) const {
  const double all = operation_bytes();
  if (spec_.grain == Grain::operation) return all;
  // Rounds of no stated size are so small that the operation can stop right here.
  if (spec_.grain == Grain::round && spec_.round_bytes == 0) return done;
  const double file = all / static_cast<double>(spec_.files);
  const double file_end = std::min(part_of(done, file) * file, all);
  if (spec_.grain == Grain::file) return file_end;
  // A round never extends over two files, so rounds count from the start of the file.
  const double file_start = std::max(0.0, file_end - file);
  return std::min(file_start + part_of(done - file_start, spec_.round_bytes) * spec_.round_bytes, file_end);
}

std::int64_t SimulatedApplication::round_at(double done) const {
  if (spec_.grain != Grain::round || spec_.round_bytes == 0) return -1;
  const double file = operation_bytes() / static_cast<double>(spec_.files);
  const double file_start = std::max(0.0, part_of(done, file) - 1) * file;
  const bool full = done >= file_start + file * (1 - 1e-9);
  return full ? -1 : static_cast<std::int64_t>(part_of(done - file_start, spec_.round_bytes)) - 1;
}

// ---- computing ---------------------------------------------------------------------------------------------------

void SimulatedApplication::compute(Time now) {
  state = ApplicationState::computing;
  since_ = now;
}

std::int64_t SimulatedApplication::next_stop() const {
  std::int64_t stop = period_end_;
  if (next_phase_ < phases_.size()) stop = std::min(stop, phase_at_);
  // At an iteration with an I/O phase, the phase comes first and the control point after it.
  if (wanted_) stop = std::min(stop, wanted_->act_at);
  if (death_ > iteration_) stop = std::min(stop, death_);
  return stop;
}

Time SimulatedApplication::time_of(std::int64_t iteration) const {
  return since_ + duration_of(static_cast<double>(iteration - iteration_) * iteration_s_ * factor_);
}

std::int64_t SimulatedApplication::iterations_done(Time now) const {
  if (state != ApplicationState::computing) return iteration_;
  // The division only estimates. time_of() decides, so both functions agree to the nanosecond.
  auto done = iteration_ + static_cast<std::int64_t>(to_s(now - since_) / (iteration_s_ * factor_));
  while (time_of(done + 1) <= now) ++done;
  while (done > iteration_ && time_of(done) > now) --done;
  return std::min(done, period_end_);
}

void SimulatedApplication::compute_until(Time now, std::int64_t iteration) {
  const double seconds = to_s(now - since_);
  result.compute_s += seconds;
  process_seconds_ += seconds * static_cast<double>(processes_);
  const auto iterations = static_cast<double>(iteration - iteration_);
  result.alone_s += iterations * first_iteration_s_ * factor_;
  result.flop += iterations * spec_.flop_per_iteration;
  result.iterations = iteration_ = iteration;
  since_ = now;
}

// ---- control points ----------------------------------------------------------------------------------------------

// Returns the first control point at which at least `iteration` iterations are done.
std::int64_t SimulatedApplication::control_point_from(std::int64_t iteration) const {
  return (iteration + spec_.control_every - 1) / spec_.control_every * spec_.control_every;
}

void SimulatedApplication::want(Time now, const event::Reconfigure& command) {
  // The control point of the present iteration is still to come during its I/O phase.
  const bool in_phase = (state == ApplicationState::waiting || state == ApplicationState::io ||
                         state == ApplicationState::paused || state == ApplicationState::between) &&
                        passed_ != iteration_;
  Wanted wanted{command, control_point_from(iterations_done(now) + (in_phase ? 0 : 1)), 0};
  // The program acts at the first control point from the requested iteration on, but not before it sees the command.
  wanted.act_at = std::max(wanted.first_look, control_point_from(std::max<std::int64_t>(0, command.at_iteration)));
  wanted_ = wanted;
}

std::int64_t SimulatedApplication::last_control_point() const {
  const std::int64_t done = passed_ == iteration_ ? iteration_ : iteration_ - 1;
  return done / spec_.control_every * spec_.control_every;
}

bool SimulatedApplication::is_wanted_now() const {
  return wanted_ && is_at_control_point() && iteration_ >= wanted_->act_at && !is_done();
}

// The rules and their order are those of Job::is_start_due in libhocket.
std::string SimulatedApplication::refusal() const {
  const event::Reconfigure& command = wanted_->command;
  if (command.at_iteration > 0 && command.at_iteration < wanted_->first_look) {
    return "iteration " + std::to_string(command.at_iteration) + " is past, the application has done " +
           std::to_string(wanted_->first_look);
  }
  if (command.processes == processes_) return "it has " + std::to_string(processes_) + " processes already";
  if (command.processes < 1) return std::to_string(command.processes) + " processes: it needs at least one";
  const double chance = spec_.troubles.resize_refusal;
  if (chance > 0 && random_.uniform(RandomStream::resize, 2 * resizes_) < chance)
    return "it refuses, as the scenario says";
  return {};
}

event::Reconfigure SimulatedApplication::drop_wanted() {
  ++resizes_;
  return std::exchange(wanted_, std::nullopt)->command;
}

SimulatedResize SimulatedApplication::take_wanted(Time now) {
  SimulatedResize resize{wanted_->command, now, 0, true};
  wanted_.reset();
  resize.started = std::max<std::int64_t>(0, resize.command.processes - processes_);
  const double chance = spec_.troubles.resize_failure;
  if (chance > 0 && random_.uniform(RandomStream::resize, 2 * resizes_ + 1) < chance) resize.succeeds = false;
  ++resizes_;
  return resize;
}

Duration SimulatedApplication::cost(const SimulatedResize& resize, const ReconfigurationCost& cost) const {
  double seconds = cost.fixed_s + cost.per_process_s * static_cast<double>(resize.started);
  if (cost.bytes_per_s > 0) seconds += spec_.data_bytes / cost.bytes_per_s;
  return duration_of(seconds);
}

void SimulatedApplication::resized(Time now, const SimulatedResize& resize) {
  result.stopped_s += to_s(now - resize.start);
  if (!resize.succeeds) return;
  set_processes(resize.command.processes);
  result.processes_last = processes_;
  ++result.reconfigurations;
}

// ---- profile -------------------------------------------------------------------------------------------------------

std::vector<event::Profile> SimulatedApplication::profile() const {
  std::vector<event::Profile> points;
  if (spec_.profile == ProfileAccuracy::none) return points;
  for (const model::CurvePoint& point : spec_.curve.points()) {
    double scale = 1;
    // Sizes above the first look faster and smaller ones slower, so a policy overestimates what growing gains.
    if (spec_.profile == ProfileAccuracy::wrong && point.processes > spec_.processes) scale = 1 - wrong_by;
    if (spec_.profile == ProfileAccuracy::wrong && point.processes < spec_.processes) scale = 1 + wrong_by;
    event::Profile told;
    told.processes = point.processes;
    told.iteration_s = point.iteration_s * scale;
    told.iteration_spread_s = told.iteration_s * spec_.jitter;
    for (const PhaseSpec& phase : phases_) {
      // The coordinator gets the mean I/O time of a phase, with the whole target at its disposal.
      told.io_s += alone_s(phase.bytes, point.processes, phase) / static_cast<double>(phases_.size());
    }
    told.io_spread_s = told.io_s * spec_.io_jitter;
    told.samples = profile_samples;
    told.flop_per_iteration = spec_.flop_per_iteration;
    points.push_back(told);
  }
  return points;
}

}  // namespace hocket::sim
