#include "sim/application.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hocket::sim {
namespace {

// Of a wrong profile: times are told to be so much off.
constexpr double wrong_by = 0.3;
constexpr std::int64_t profile_samples = 10;

// The number of the first end of a part at or after `done`, counted from 1; what is lost in rounding is no part.
double part_of(double done, double part_bytes) { return std::max(0.0, std::ceil(done / part_bytes - 1e-9)); }

Duration duration_of(double seconds) { return Duration{std::llround(seconds * 1e9)}; }

}  // namespace

Application::Application(const ApplicationSpec& spec, const TargetSpec& target, std::uint64_t seed)
    : spec_(spec), target_(target), random_(seed, spec.name) {
  set_processes(spec.processes);
  first_iteration_s_ = iteration_s_;
  first_bandwidth_ = bandwidth_;
  result.name = spec.name;
  result.processes_first = result.processes_last = spec.processes;
}

void Application::set_processes(std::int64_t processes) {
  processes_ = processes;
  iteration_s_ = spec_.curve.iteration(processes).value;
  bandwidth_ = most_bandwidth(processes);
}

double Application::most_bandwidth(std::int64_t processes) const {
  double most = target_.bandwidth;
  if (spec_.io_bandwidth > 0) most = std::min(most, spec_.io_bandwidth);
  if (!spec_.io_curve.empty()) most = std::min(most, spec_.io_bytes / spec_.io_curve.iteration(processes).value);
  return most;
}

// ---- periods -----------------------------------------------------------------------------------------------------

void Application::begin_period() {
  const std::uint64_t number = periods_++;
  const std::int64_t every = spec_.iterations_per_phase;
  period_end_ = std::min((iteration_ / every + 1) * every, spec_.iterations);
  const Troubles& troubles = spec_.troubles;
  const auto happens = [&](Stream stream, double chance) {
    return chance > 0 && random_.uniform(stream, 2 * number) < chance;
  };
  if (happens(Stream::period_change, troubles.period_change)) {
    pace_ = std::exp2(2 * random_.uniform(Stream::period_change, 2 * number + 1) - 1);
  }
  has_phase_ = period_end_ % every == 0 && spec_.io_bytes > 0 && !happens(Stream::phase_skip, troubles.phase_skip);
  if (happens(Stream::death, troubles.death)) {
    const double part = random_.uniform(Stream::death, 2 * number + 1);
    death_ = iteration_ + 1 + static_cast<std::int64_t>(part * static_cast<double>(period_end_ - iteration_));
    death_ = std::min(death_, period_end_);
  }
  std::pair<double, double> normal{0, 0};
  if (spec_.jitter > 0 || spec_.io_jitter > 0) normal = random_.normal(Stream::jitter, number);
  factor_ = pace_ * jitter_factor(spec_.jitter, normal.first);
  phase_bytes_ = spec_.io_bytes * jitter_factor(spec_.io_jitter, normal.second);
}

void Application::phase_done(Duration io) {
  result.io_s += to_s(io);
  result.io_alone_s += phase_bytes_ / first_bandwidth_;
  result.bytes_written += phase_bytes_;
  ++result.phases;
}

double Application::stop_after(double done) const {
  if (spec_.grain == Grain::phase) return phase_bytes_;
  if (spec_.grain == Grain::round && spec_.round_bytes == 0) return done;
  const double file = phase_bytes_ / static_cast<double>(spec_.files);
  const double file_end = std::min(part_of(done, file) * file, phase_bytes_);
  if (spec_.grain == Grain::file) return file_end;
  const double file_start = std::max(0.0, file_end - file);
  return std::min(file_start + part_of(done - file_start, spec_.round_bytes) * spec_.round_bytes, file_end);
}

std::int64_t Application::round_at(double done) const {
  if (spec_.grain != Grain::round || spec_.round_bytes == 0) return -1;
  const double file = phase_bytes_ / static_cast<double>(spec_.files);
  const double file_start = std::max(0.0, part_of(done, file) - 1) * file;
  const bool full = done >= file_start + file * (1 - 1e-9);
  return full ? -1 : static_cast<std::int64_t>(part_of(done - file_start, spec_.round_bytes)) - 1;
}

// ---- computing ---------------------------------------------------------------------------------------------------

void Application::compute(Time now) {
  state = State::computing;
  since_ = now;
}

std::int64_t Application::next_stop() const {
  std::int64_t stop = period_end_;
  // The control point of the phase's iteration comes after the phase.
  if (wanted_) stop = std::min(stop, wanted_->act_at);
  if (death_ > iteration_) stop = std::min(stop, death_);
  return stop;
}

Time Application::time_of(std::int64_t iteration) const {
  return since_ + duration_of(static_cast<double>(iteration - iteration_) * iteration_s_ * factor_);
}

std::int64_t Application::iterations_done(Time now) const {
  if (state != State::computing) return iteration_;
  auto done = iteration_ + static_cast<std::int64_t>(to_s(now - since_) / (iteration_s_ * factor_));
  while (time_of(done + 1) <= now) ++done;
  while (done > iteration_ && time_of(done) > now) --done;
  return std::min(done, period_end_);
}

void Application::compute_until(Time now, std::int64_t iteration) {
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

// The first at which so many iterations are done.
std::int64_t Application::control_point_from(std::int64_t iteration) const {
  return (iteration + spec_.control_every - 1) / spec_.control_every * spec_.control_every;
}

void Application::want(Time now, const event::Reconfigure& command) {
  // The control point of an iteration with a phase is still to come while that is under way.
  const bool in_phase = state == State::waiting || state == State::io || state == State::paused;
  Wanted wanted{command, control_point_from(iterations_done(now) + (in_phase ? 0 : 1)), 0};
  wanted.act_at = std::max(wanted.first_look, control_point_from(std::max<std::int64_t>(0, command.at_iteration)));
  wanted_ = wanted;
}

bool Application::is_wanted_now() const {
  return wanted_ && is_at_control_point() && iteration_ >= wanted_->act_at && !is_done();
}

// As Job::is_start_due of libhocket refuses.
std::string Application::refusal() const {
  const event::Reconfigure& command = wanted_->command;
  if (command.at_iteration > 0 && command.at_iteration < wanted_->first_look) {
    return "iteration " + std::to_string(command.at_iteration) + " is past, the application has done " +
           std::to_string(wanted_->first_look);
  }
  if (command.processes == processes_) return "it has " + std::to_string(processes_) + " processes already";
  if (command.processes < 1) return std::to_string(command.processes) + " processes: it needs at least one";
  const double chance = spec_.troubles.resize_refusal;
  if (chance > 0 && random_.uniform(Stream::resize, 2 * resizes_) < chance) return "it refuses, as the scenario says";
  return {};
}

event::Reconfigure Application::drop_wanted() {
  ++resizes_;
  return std::exchange(wanted_, std::nullopt)->command;
}

Resize Application::take_wanted(Time now) {
  Resize resize{wanted_->command, now, 0, true};
  wanted_.reset();
  resize.started = std::max<std::int64_t>(0, resize.command.processes - processes_);
  const double chance = spec_.troubles.resize_failure;
  if (chance > 0 && random_.uniform(Stream::resize, 2 * resizes_ + 1) < chance) resize.succeeds = false;
  ++resizes_;
  return resize;
}

Duration Application::cost(const Resize& resize, const ReconfigurationCost& cost) const {
  double seconds = cost.fixed_s + cost.per_process_s * static_cast<double>(resize.started);
  if (cost.bytes_per_s > 0) seconds += spec_.data_bytes / cost.bytes_per_s;
  return duration_of(seconds);
}

void Application::resized(Time now, const Resize& resize) {
  result.stopped_s += to_s(now - resize.start);
  if (!resize.succeeds) return;
  set_processes(resize.command.processes);
  result.processes_last = processes_;
  ++result.reconfigurations;
}

// ---- what is told of it --------------------------------------------------------------------------------------------

std::vector<event::Profile> Application::profile() const {
  std::vector<event::Profile> points;
  if (spec_.profile == Profile::none) return points;
  for (const model::CurvePoint& point : spec_.curve.points()) {
    double scale = 1;
    if (spec_.profile == Profile::wrong && point.processes > spec_.processes) scale = 1 - wrong_by;
    if (spec_.profile == Profile::wrong && point.processes < spec_.processes) scale = 1 + wrong_by;
    event::Profile told;
    told.processes = point.processes;
    told.iteration_s = point.iteration_s * scale;
    told.iteration_spread_s = told.iteration_s * spec_.jitter;
    told.io_s = spec_.io_bytes / most_bandwidth(point.processes);
    told.io_spread_s = told.io_s * spec_.io_jitter;
    told.samples = profile_samples;
    told.flop_per_iteration = spec_.flop_per_iteration;
    points.push_back(told);
  }
  return points;
}

}  // namespace hocket::sim
