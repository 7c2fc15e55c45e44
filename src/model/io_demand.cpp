#include "model/io_demand.hpp"

#include <algorithm>

#include "base/saturating.hpp"
#include "model/application.hpp"
#include "model/target.hpp"

namespace hocket::model {
namespace {

// Of a phase alone: what is taken to be left of one that lasts longer than it should.
constexpr double least_left = 0.02;
// Where nothing at all is known.
constexpr double unknown_phase_s = 1;
// Of a new value against those before it.
constexpr double weight = 0.3;
// A phase counts as undisturbed with no more than the first part of it beside others, as disturbed with at least the
// second one.
constexpr double least_shared = 0.02;
constexpr double well_shared = 0.2;
constexpr double most_interference = 64;

void blend(double& mean, double value) { mean = mean > 0 ? mean + weight * (value - mean) : value; }

double positive_bytes(std::int64_t bytes) { return static_cast<double>(std::max<std::int64_t>(0, bytes)); }

double alone_s(const Application& application, const Target& target) {
  const IoDemand& demand = application.demand;
  const auto bytes = positive_bytes(demand.bytes > 0 ? demand.bytes : demand.largest);
  if (demand.bytes > 0 && application.io.bytes_per_s > 0) return bytes / application.io.bytes_per_s;
  const std::int64_t processes = application.computing_processes();
  if (!application.curve.empty() && processes > 0) {
    if (const double known = application.curve.io(processes).value; known > 0) return known;
  }
  if (application.io.phase_s > 0) return application.io.phase_s;
  if (const Duration mean = application.history.duration().mean; mean > Duration{}) return to_s(mean);
  if (target.record != nullptr) {
    if (bytes > 0 && target.record->bytes_per_s > 0) return bytes / target.record->bytes_per_s;
    if (target.record->phase_s > 0) return target.record->phase_s;
  }
  return unknown_phase_s;
}

double of_target(const Target& target, double assumed) {
  return target.record != nullptr && target.record->interference > 0 ? target.record->interference : assumed;
}

}  // namespace

Work work_of(const Application& application, const Target& target) {
  const double alone = alone_s(application, target);
  double left = alone - application.demand.served_s;
  for (const auto holder : application.held) left -= holder->target->progress.seen(holder->user).served_s;
  return {alone, left > 0 ? left : least_left * alone};
}

double interference_of(const Application& application, const Target& target, double assumed) {
  return application.io.interference > 0 ? application.io.interference : of_target(target, assumed);
}

void demand(Application& application, const event::StartIo& start, Time now) {
  IoDemand& demand = application.demand;
  if (demand.since == Time{}) demand.since = now;
  demand.largest = std::max(demand.largest, start.bytes);
  if (start.phase_bytes > 0) demand.bytes = saturating_sum(demand.moved, start.phase_bytes);
}

void count_progress(Target& target, Time now, double assumed) {
  target.progress.advance(to_s(now - target.served), of_target(target, assumed));
  target.served = now;
}

namespace {

// What was done since it was asked last.
void take_progress(Holder& holder) {
  IoDemand& demand = holder.application->demand;
  const Progress::Sums done = holder.target->progress.take(holder.user);
  demand.served_s += done.served_s;
  demand.shared_s += done.shared_s;
  demand.shared_count += done.shared_count;
}

}  // namespace

void begin_progress(Holder& holder) {
  holder.user = holder.target->progress.enter(holder.application->io.interference);
}

void end_progress(Holder& holder) {
  take_progress(holder);
  holder.target->progress.leave(holder.user);
}

namespace {

void served(Application& application, const Target& target, std::int64_t bytes) {
  IoDemand& demand = application.demand;
  if (demand.bytes <= 0) return;
  for (const auto holder : application.held) take_progress(*holder);
  const double part = positive_bytes(bytes) / positive_bytes(demand.bytes);
  demand.served_s = alone_s(application, target) * std::min(part, 1.0);
}

}  // namespace

void told_progress(Application& application, const Request& request, std::int64_t bytes) {
  if (bytes <= 0) return;
  served(application, *request.target, std::max(application.demand.moved, saturating_sum(request.before, bytes)));
}

void moved(Application& application, const Target& target, std::int64_t bytes) {
  if (bytes <= 0) return;
  application.demand.moved = saturating_sum(application.demand.moved, bytes);
  served(application, target, application.demand.moved);
}

void learn_stop(Application& application, Duration took) { blend(application.io.stop_s, to_s(took)); }

void learn(Application& application, TargetRecord* record, Duration io, std::int64_t bytes) {
  const IoDemand& demand = application.demand;
  const double io_s = to_s(io);
  if (!demand.granted || !(io_s > 0)) return;
  if (demand.shared_s <= least_shared * io_s) {
    for (IoRecord* one : {&application.io, static_cast<IoRecord*>(record)}) {
      if (one == nullptr) continue;
      blend(one->phase_s, io_s);
      if (bytes > 0) blend(one->bytes_per_s, positive_bytes(bytes) / io_s);
    }
    return;
  }
  const double alone = bytes > 0 && application.io.bytes_per_s > 0 ? positive_bytes(bytes) / application.io.bytes_per_s
                                                                   : application.io.phase_s;
  const double shared_s = std::min(demand.shared_s, io_s);
  if (!(alone > 0) || shared_s < well_shared * io_s) return;
  const double others = demand.shared_count / demand.shared_s - 1;
  const double progress_s = std::max(alone - (io_s - shared_s), shared_s / most_interference);
  const double measured = std::clamp(1 + (shared_s / progress_s - 1) / others, 1.0, most_interference);
  blend(application.io.interference, measured);
  if (record != nullptr) blend(record->interference, measured);
}

}  // namespace hocket::model
