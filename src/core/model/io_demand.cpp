#include "model/io_demand.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/saturating.hpp"
#include "model/application.hpp"
#include "model/measures.hpp"
#include "model/target.hpp"

namespace hocket::model {
namespace {

// The part of the time alone that is assumed to be left of a phase that lasts longer than expected.
constexpr double least_left = 0.02;
// The duration of a phase if nothing at all is known.
constexpr double unknown_phase_s = 1;
// The weight of a new value in a running mean.
constexpr double weight = 0.3;
// From this excess demand on, a phase measures the slowdown factor beside one that demands all of the target. With
// less, its loss measures how others disturb it.
constexpr double well_demanded = 0.5;
constexpr double most_disturbance = 3;
constexpr double disturbance_weight = 0.5;      // for a phase all of which was shared
constexpr double disturbance_forgotten = 0.05;  // with each phase alone
constexpr double usual_interference = 2;        // slowdown factor that sharing usually causes
constexpr double disturbance_step = 1.0 / 16;
// An announcement has missed if it is off by more than this part of the moved bytes.
constexpr double most_off = 0.2;
constexpr double rounding = 1e-6;
constexpr double forgotten = 0.02;  // part of the greatest rate, with each phase alone

void blend(double& mean, double value) { mean = mean > 0 ? mean + weight * (value - mean) : value; }

double positive_bytes(std::int64_t bytes) { return static_cast<double>(std::max<std::int64_t>(0, bytes)); }

// True if the announced size of the present phase is believed.
bool is_announced(const Application& application) {
  return application.demand.bytes > 0 && application.announcements.believed();
}

// Returns the phase of the cycle that is under way or comes next; nullptr if all phases are of one kind, or none is
// known.
const CyclePhase* one_of_cycle(const Application& application, const Target& target) {
  if (application.history.cycle_length() == 1) return nullptr;
  return application.history.due(target.name, application.demand.since);
}

// Returns the rate in the present phase, in bytes per second; 0 if unknown.
double rate_of(const Application& application, const Target& target) {
  const CyclePhase* kind = one_of_cycle(application, target);
  if (kind != nullptr && kind->bytes > 0 && kind->io.mean > Duration{}) {
    return positive_bytes(kind->bytes) / to_s(kind->io.mean);
  }
  if (application.io.bytes_per_s > 0) return application.io.bytes_per_s;
  return target.record != nullptr ? target.record->bytes_per_s : 0;
}

// Returns the time of a phase according to the curve of the application, at the present size; 0 if unknown. The curve
// has one time for all I/O of a cycle, of which this phase takes a part.
double profiled_s(const Application& application, const CyclePhase* kind) {
  const std::int64_t processes = application.computing_processes();
  if (application.curve.empty() || processes <= 0) return 0;
  const Duration all = application.history.duration().mean;
  const double part = kind != nullptr && all > Duration{} ? to_s(kind->io.mean) / to_s(all) : 1;
  return application.curve.io(processes).value * part;
}

// Returns the least bytes that the present phase has in all: what was moved, and the access that is under way.
double seen_bytes(const Application& application) {
  const IoDemand& demand = application.demand;
  const std::int64_t present = application.granted > 0 ? demand.largest : 0;
  return positive_bytes(std::max(demand.largest, saturating_sum(demand.moved, present)));
}

// Returns the seconds alone of the present phase. The sources come in order of trust: the announcement, the curve,
// earlier phases of the application, phases of others on the target. Returns nothing if none of them says anything.
std::optional<double> known_alone_s(const Application& application, const Target& target) {
  const IoDemand& demand = application.demand;
  const auto bytes = positive_bytes(demand.bytes > 0 ? demand.bytes : demand.largest);
  if (is_announced(application)) {
    if (const double rate = rate_of(application, target); rate > 0) return bytes / rate;
  }
  const CyclePhase* kind = one_of_cycle(application, target);
  if (const double known = profiled_s(application, kind); known > 0) return known;
  if (kind != nullptr && kind->io.mean > Duration{}) return to_s(kind->io.mean);
  if (application.io.phase_s > 0) return application.io.phase_s;
  if (const CyclePhase* due = application.history.due(); due != nullptr && due->io.mean > Duration{}) {
    return to_s(due->io.mean);
  }
  if (target.record != nullptr) {
    const double seen = demand.bytes > 0 ? bytes : seen_bytes(application);
    if (seen > 0 && target.record->bytes_per_s > 0) return seen / target.record->bytes_per_s;
    if (target.record->phase_s > 0) return target.record->phase_s;
  }
  return std::nullopt;
}

double alone_s(const Application& application, const Target& target) {
  return known_alone_s(application, target).value_or(unknown_phase_s);
}

double of_target(const IoRecord* record, double assumed) {
  return record != nullptr && record->interference > 0 ? record->interference : assumed;
}

double interference(const IoRecord& own, const IoRecord* record, double assumed) {
  return own.interference > 0 ? own.interference : of_target(record, assumed);
}

// Returns the disturbance rounded to steps, because an event costs more with each different value (progress.hpp).
double disturbance(const IoRecord& own, const IoRecord* record) {
  const double on_target = record != nullptr ? record->disturbance.value_or(0) : 0;
  return std::max(0.0, std::round(own.disturbance.value_or(on_target) / disturbance_step) * disturbance_step);
}

}  // namespace

Work work_of(const Application& application, const Target& target) {
  const std::optional<double> known = known_alone_s(application, target);
  const double alone = known.value_or(unknown_phase_s);
  double left = alone - application.demand.served_s;
  for (const auto holder : application.held) left -= holder->target->progress.seen(holder->user).served_s;
  return {alone, left > 0 ? left : least_left * alone, known.has_value()};
}

namespace {

// Returns the bytes of the finest part of the phase that was announced; 0: none was. Without files, it is one file.
double part_bytes(const IoDemand& demand) {
  if (demand.bytes_per_round > 0) return positive_bytes(demand.bytes_per_round);
  if (demand.rounds <= 0) return demand.bytes_per_file;
  return (demand.bytes_per_file > 0 ? demand.bytes_per_file : positive_bytes(demand.bytes)) /
         positive_bytes(demand.rounds);
}

}  // namespace

std::optional<double> announced_stop_s(const Application& application, const Target& target) {
  const IoDemand& demand = application.demand;
  const double part = part_bytes(demand);
  if (!(part > 0) || !is_announced(application)) return std::nullopt;
  const Work work = work_of(application, target);
  const double part_s = work.alone_s * std::min(1.0, part / positive_bytes(demand.bytes));
  if (!(part_s > 0) || application.io.stop_s > part_s) return std::nullopt;
  if (application.granted == 0) return 0;
  // Parts end together with the phase. At the end of a part the next one has begun, because the grant is in use.
  const double left_s = std::fmod(work.left_s, part_s);
  return left_s > rounding * part_s ? left_s : part_s;
}

Slowness slowness_of(const Application& application, const Target& target, double assumed) {
  return {interference(application.io, target.record, assumed), disturbance(application.io, target.record)};
}

double demanded_by(const Application& application, const Target& target) {
  const double most = target.record != nullptr ? target.record->most_bytes_per_s : 0;
  const bool known = application.io.bytes_per_s > 0 && application.io.measured_on == target.record;
  if (!known || !(most > 0)) return 1;
  return std::min(1.0, application.io.bytes_per_s / most);
}

namespace {

// Takes an announcement, of START_IO or INFORM_IO. What is unknown now, as between two inner levels, stays as it was.
template <class E>
void take_announced(IoDemand& demand, const E& told) {
  const bool is_new = told.files != demand.files || !(demand.bytes_per_file > 0);
  if (told.files > 0 && told.phase_bytes > 0 && is_new)
    demand.bytes_per_file = positive_bytes(told.phase_bytes) / positive_bytes(told.files);
  if (told.files > 0) demand.files = told.files;
  if (told.rounds > 0) demand.rounds = told.rounds;
  if (told.bytes_per_round > 0) demand.bytes_per_round = told.bytes_per_round;
  if (!told.info.empty()) demand.info = told.info;
  if (told.phase_bytes <= 0) return;
  demand.bytes = saturating_sum(demand.moved, told.phase_bytes);
  if (demand.announced == 0) demand.announced = demand.bytes;
}

}  // namespace

void announce(Application& application, const event::InformIo& inform) { take_announced(application.demand, inform); }

void demand(Application& application, const event::StartIo& start, Time now) {
  IoDemand& demand = application.demand;
  if (demand.since == Time{}) demand.since = now;
  demand.largest = std::max(demand.largest, start.bytes);
  take_announced(demand, start);
}

void count_progress(Target& target, Time now, double assumed) {
  const double passed_s = to_s(now - target.served);
  target.progress.advance(passed_s, of_target(target.record, assumed));
  for (std::size_t load = 0; load < loads; ++load) {
    target.present_s[load] += passed_s * static_cast<double>(target.present[load]);
  }
  target.served = now;
}

namespace {

// Moves the progress since the last call from the target to the phase and the occupancy of the holder.
void take_progress(Holder& holder) {
  IoDemand& demand = holder.application->demand;
  const Progress::ServiceSums done = holder.target->progress.take(holder.user);
  demand.served_s += done.served_s;
  demand.shared_s += done.shared_s;
  demand.others_s += done.others_s;
  demand.excess_s += done.excess_s;
  holder.occupancy.served_s += done.served_s;
  holder.occupancy.shared_s += done.shared_s;
  holder.occupancy.met_s += done.others_s;
}

}  // namespace

void begin_progress(Holder& holder) {
  const Application& application = *holder.application;
  const Target& target = *holder.target;
  // An unknown interference stays 0, so that the target's value applies, which may be learned in the meantime.
  const Slowness slowness{application.io.interference, disturbance(application.io, target.record)};
  holder.user = holder.target->progress.enter(slowness, demanded_by(application, target), holder.parts);
}

void change_parts(Holder& holder) {
  end_progress(holder);
  begin_progress(holder);
}

void end_progress(Holder& holder) {
  take_progress(holder);
  holder.target->progress.leave(holder.user);
}

namespace {

// Sets the progress by bytes moved, which is more accurate than by time. It needs a believed announcement.
void served(Application& application, const Target& target, std::int64_t bytes) {
  IoDemand& demand = application.demand;
  if (!is_announced(application)) return;
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

namespace {

void learn_alone(Application& application, TargetRecord* record, double io_s, std::int64_t bytes) {
  for (IoRecord* one : {&application.io, static_cast<IoRecord*>(record)}) {
    if (one == nullptr) continue;
    blend(one->phase_s, io_s);
    if (bytes > 0) blend(one->bytes_per_s, positive_bytes(bytes) / io_s);
    // The disturbance fades. Otherwise an application that is kept apart because of it would never see that it is
    // over.
    if (one->disturbance) *one->disturbance *= 1 - disturbance_forgotten;
  }
  if (bytes > 0) application.io.measured_on = record;
  if (record == nullptr || bytes <= 0) return;
  // The greatest rate follows slowly, so that a phase served from a cache is not believed for ever. An application's
  // rate on another target must not count here, which the minimum prevents.
  const double rate = std::min(application.io.bytes_per_s, positive_bytes(bytes) / io_s);
  double& most = record->most_bytes_per_s;
  most = std::max(rate, most + forgotten * (rate - most));
}

// The loss of a phase that was beside others.
struct Loss {
  double part;    // extra time relative to the time alone, in the shared part
  double shared;  // shared part of the phase, 0 to 1
  double others;  // mean number in the shared part
  double excess;  // mean excess demand in the shared part
};

void learn_beside_others(Application& application, TargetRecord* record, const Loss& loss) {
  if (loss.excess >= well_demanded) {
    const double disturbed = disturbance(application.io, record) * loss.others;
    const double measured = std::clamp(1 + (loss.part - disturbed) / loss.excess, 1.0, most_interference);
    blend(application.io.interference, measured);
    if (record != nullptr) blend(record->interference, measured);
    return;
  }
  const double per_excess = interference(application.io, record, usual_interference) - 1;
  const double each = (std::min(loss.part, most_disturbance) - per_excess * loss.excess) / loss.others;
  const double before = record != nullptr ? record->disturbance.value_or(0) : 0;
  // The less of a phase was shared, the more of its loss is random variation, and the less it counts.
  for (IoRecord* one : {&application.io, static_cast<IoRecord*>(record)}) {
    if (one == nullptr) continue;
    const double mean = one->disturbance.value_or(before);
    one->disturbance = mean + disturbance_weight * loss.shared * loss.shared * (each - mean);
  }
}

}  // namespace

bool Announcements::holds(std::int64_t announced, std::int64_t moved) {
  const double off = std::abs(positive_bytes(announced) - positive_bytes(moved));
  return off <= most_off * positive_bytes(moved);
}

void Announcements::compare(std::int64_t announced, std::int64_t moved) {
  const bool held = holds(announced, moved);
  held_ = held ? held_ + 1 : 0;
  if (!held) missed_ = std::min(missed_ + 1, most_missed);
  if (held_ >= restoring) missed_ = 0;
}

void learn_part(Application& application, Duration io, std::int64_t bytes, std::int64_t announced_left) {
  IoDemand& demand = application.demand;
  demand.reported_io = saturating_sum(demand.reported_io, std::max(Duration{}, io));
  demand.reported_bytes = saturating_sum(demand.reported_bytes, std::max<std::int64_t>(0, bytes));
  // All of the announcement has come true, so what follows is not a part of it: a program may prepare once for many
  // equal phases. It is not known to be wrong before the phase is over.
  const bool is_done = demand.announced > 0 && announced_left <= 0;
  if (!is_done || !Announcements::holds(demand.announced, demand.reported_bytes)) return;
  application.announcements.compare(std::exchange(demand.announced, 0), demand.reported_bytes);
}

void learn(Application& application, TargetRecord* record, Duration io, std::int64_t bytes,
           std::int64_t announced_left) {
  const IoDemand& demand = application.demand;
  if (demand.announced > 0 && bytes > 0)
    application.announcements.compare(demand.announced,
                                      saturating_sum(bytes, std::max<std::int64_t>(0, announced_left)));
  const double io_s = to_s(io);
  if (!demand.granted || !(io_s > 0)) return;
  // The time alone follows from the bytes if they are known, because phases vary in size.
  if (demand.shared_s <= least_shared * io_s) return learn_alone(application, record, io_s, bytes);
  const double alone = bytes > 0 && application.io.bytes_per_s > 0 ? positive_bytes(bytes) / application.io.bytes_per_s
                                                                   : application.io.phase_s;
  const double shared_s = std::min(demand.shared_s, io_s);
  if (!(alone > 0) || shared_s < well_shared * io_s) return;
  const double progress_s = std::max(alone - (io_s - shared_s), shared_s / most_interference);
  learn_beside_others(application, record,
                      {shared_s / progress_s - 1, shared_s / io_s, demand.others_s / demand.shared_s,
                       demand.excess_s / demand.shared_s});
}

}  // namespace hocket::model
