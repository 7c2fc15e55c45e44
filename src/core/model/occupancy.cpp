#include "model/occupancy.hpp"

#include <algorithm>
#include <cmath>

#include "base/saturating.hpp"
#include "model/application.hpp"

namespace hocket::model {
namespace {

// A measured contention is trusted for at most this many later accesses alone, because storage changes.
constexpr std::int64_t most_alone = 256;
// The upper limit for the relative error of an estimate, as far as waiting for it is concerned.
constexpr double most_spread = 0.25;
// The upper limit for a gain, in multiples of what the access took.
constexpr double most_gained = 2;
constexpr double distrust = 2;            // discount on gains, per unit of relative error
constexpr double telling_share = 0.2;     // part of an access that must be shared to judge an estimate
constexpr double least_telling_s = 0.05;  // shortest write that shows how fast the target is
constexpr double most_others = 1.1;       // mean number of others up to which two rates describe it
constexpr double guessed_s = 1;           // duration if nothing at all is known

std::size_t number(AccessLoad load) { return static_cast<std::size_t>(load); }

// Stores what an access showed of contention. Without such a result, the measurements of its load age by one access.
void learn_contention(TargetRecord& record, AccessLoad own,
                      const std::optional<AccessHistory::ShownContention>& shown) {
  if (!shown) {
    for (auto& one : record.beside[number(own)]) ++one.alone;
    return;
  }
  auto& known = record.beside[number(shown->own)][number(shown->others)];
  known.alone = 0;
  known.contention.add(shown->contention);
}

// Leaves out those others that used other parts of the target. Their loads count as those of all others.
void count_met_only(Occupancy& occupancy) {
  double all_s = 0;
  for (const double others_s : occupancy.others_s) all_s += others_s;
  if (!(all_s > occupancy.met_s)) return;
  for (double& others_s : occupancy.others_s) others_s *= occupancy.met_s / all_s;
}

// Returns the time alone of a large write at the rate that all have on the target; 0 if unknown. The write itself
// contributes to that rate.
double told_by_rate(TargetRecord* record, const Occupancy& occupancy, Time now) {
  const double span_s = to_s(now - occupancy.since - occupancy.idle);
  const double others_s = occupancy.others_s[number(AccessLoad::write)];
  const bool tells = record != nullptr && occupancy.whole && occupancy.bytes > 0 && span_s >= least_telling_s;
  if (!tells || occupancy.others_s[number(AccessLoad::read)] > telling_share * span_s) return 0;
  if (others_s <= most_others * std::max(occupancy.shared_s, 1e-9)) {
    const double shared_s = std::min(occupancy.shared_s, span_s);
    record->write_rate.add(span_s - shared_s, shared_s, static_cast<double>(occupancy.bytes));
  }
  const auto rate = record->write_rate.bytes_per_s();
  return rate ? static_cast<double>(occupancy.bytes) / *rate : 0;
}

// Adds to `late_s` the difference between the time that the access took and its time without coordination.
void settle(Application& application, Target& target, const Occupancy& occupancy, double alone_s, Time end, bool few) {
  target.uncoordinated.advance(end);
  const Uncoordinated::SimulatedAccess* access = target.uncoordinated.find(application.id);
  if (access == nullptr || !access->goes_on) return;
  const Time asked = access->since;
  const double waited_s = to_s(occupancy.since - asked);
  const bool ordered = waited_s > 0 || !target.waiting.empty() || target.last_wait >= asked || access->carried_s > 0;
  const bool resumed = occupancy.resumed_s > 0;
  const double served_s = occupancy.resumed_s + occupancy.served_s;
  const auto would_s = target.uncoordinated.end(application.id, alone_s > 0 ? alone_s : served_s, end);
  if (!(alone_s > 0) && !resumed) {
    application.late_s += waited_s;
    return;
  }
  const double took_s = to_s(end - asked);
  if (!ordered && !resumed && took_s > 0 && occupancy.shared_s >= telling_share * took_s) {
    application.late_error.add(std::abs(took_s - *would_s) / took_s);
  }
  // Coordination had no effect here, so any difference is an error of the estimate.
  if (!ordered && !resumed) return;
  const double late_s = took_s - *would_s;
  // Among many applications, a gain is believed only as far as earlier estimates were right.
  const double error = std::min(1.0, distrust * application.late_error.mean());
  const double believed = few ? 1 : 1 - error;
  application.late_s += late_s > 0 ? late_s : std::max(believed * late_s, -most_gained * took_s);
}

// Estimates what is left of an access and its phase. `resumed_s` is its progress before a suspension.
Remaining remaining(const Application& application, const Target& target, std::size_t kind, std::int64_t bytes,
                    double resumed_s) {
  Remaining remaining;
  const AccessHistory& accesses = application.accesses;
  const AccessLoad load = accesses.load(kind);
  const double rate = target.record != nullptr ? target.record->rate[number(load)].bytes_per_s() : 0;
  if (const auto access = accesses.access(kind, bytes)) {
    remaining.access_s = access->seconds;
    remaining.spread_s = std::min(access->spread_s, most_spread * access->seconds);
    remaining.known = access->is_alike();
  } else {
    remaining.access_s = bytes > 0 && rate > 0 ? static_cast<double>(bytes) / rate : guessed_s;
    remaining.spread_s = most_spread * remaining.access_s;
    // Reads may be served from a cache, so their size does not predict their time.
    remaining.known = bytes > 0 && rate > 0 && load == AccessLoad::write;
  }
  remaining.served_s = resumed_s;
  remaining.left_s = remaining.access_s - resumed_s;
  const IoDemand& demand = application.demand;
  const double own_rate = accesses.bytes_per_s() > 0 ? accesses.bytes_per_s() : rate;
  if (demand.bytes > demand.moved && own_rate > 0) {
    remaining.left_s = std::max(remaining.left_s, static_cast<double>(demand.bytes - demand.moved) / own_rate);
  } else if (const auto rest_s = accesses.rest_of_phase_s()) {
    remaining.left_s = std::max(remaining.left_s, *rest_s - resumed_s);
  }
  return remaining;
}

}  // namespace

void begin_occupancy(Holder& holder, const Request& request) {
  holder.occupancy = {};
  holder.occupancy.kind = request.kind;
  holder.occupancy.asked = request.bytes;
  holder.occupancy.since = request.granted;
  holder.occupancy.idle = Duration::max();
  holder.others_before = holder.target->present_s;
  ++holder.target->present[number(holder.application->accesses.load(request.kind))];
}

void join_occupancy(Holder& holder, const Request& request) {
  holder.occupancy.resumed_s = std::max(holder.occupancy.resumed_s, request.served_s);
  holder.occupancy.whole &= request.served_s == 0;
}

void stop_access(Holder& holder, Request& request) {
  const Occupancy& occupancy = holder.occupancy;
  request.served_s = occupancy.resumed_s + occupancy.served_s + holder.target->progress.seen(holder.user).served_s;
  holder.occupancy.whole = false;
}

void count_access(Holder& holder, std::int64_t bytes, Duration idle) {
  holder.occupancy.bytes = saturating_sum(holder.occupancy.bytes, std::max<std::int64_t>(0, bytes));
  holder.occupancy.idle = std::min(holder.occupancy.idle, std::max(Duration{}, idle));
}

void end_occupancy(Holder& holder, Time now, bool goes_on, bool few) {
  Application& application = *holder.application;
  Target& target = *holder.target;
  Occupancy& occupancy = holder.occupancy;
  const AccessLoad own = application.accesses.load(occupancy.kind);
  --target.present[number(own)];
  if (occupancy.idle == Duration::max()) occupancy.idle = {};
  // The holder was idle at the end of its occupancy, so the others were not really beside it then.
  for (Holder& other : target.holders) {
    if (occupancy.idle == Duration{}) break;  // keeps the cost of an event independent of the number of holders
    if (&other == &holder || other.accesses() == 0) continue;
    const double idle_s = to_s(std::min(occupancy.idle, now - other.occupancy.since));
    other.occupancy.idle_beside_s += idle_s;
    other.occupancy.others_s[number(own)] -= idle_s;
  }
  occupancy.shared_s = std::max(0.0, occupancy.shared_s - occupancy.idle_beside_s);
  for (std::size_t load = 0; load < loads; ++load) {
    occupancy.others_s[load] += target.present_s[load] - holder.others_before[load];
  }
  occupancy.others_s[number(own)] -= to_s(now - occupancy.since);
  if (!holder.parts.is_whole()) count_met_only(occupancy);
  // The contention does not matter for an access that was alone.
  const double beside = occupancy.shared_s > 0 ? interference_of(application, target, occupancy.kind, own) : 0;
  const double told_s = own == AccessLoad::write ? told_by_rate(target.record, occupancy, now) : 0;
  const AccessHistory::Ended ended = application.accesses.ended(occupancy, now, {beside, told_s, few});
  if (target.record != nullptr && ended.alone_s > 0) {
    learn_contention(*target.record, own, ended.shown);
    if (occupancy.bytes > 0) target.record->rate[number(own)].add(static_cast<double>(occupancy.bytes), ended.alone_s);
  }
  if (!goes_on) settle(application, target, occupancy, ended.alone_s, now - occupancy.idle, few);
}

Remaining remaining_of(const Application& application, const Request& waiting) {
  return remaining(application, *waiting.target, waiting.kind, waiting.bytes, waiting.served_s);
}

Remaining remaining_of(const Holder& holder, Time now) {
  const Application& application = *holder.application;
  const Target& target = *holder.target;
  const Occupancy& occupancy = holder.occupancy;
  Remaining result = remaining(application, target, occupancy.kind, occupancy.asked, occupancy.resumed_s);
  if (holder.accesses() > 0) {
    const double served_s = occupancy.served_s + target.progress.seen(holder.user).served_s;
    result.served_s += served_s;
    result.left_s -= served_s;
    return result;
  }
  // Between two accesses, another one follows with some probability.
  const double follows = application.accesses.follows();
  const auto rest_s = application.accesses.rest_of_phase_s();
  result.left_s = follows * (rest_s ? *rest_s : result.access_s);
  if (const auto gap = application.accesses.gap()) {
    result.left_s += std::max(0.0, gap->mean_s - to_s(now - application.accesses.last_end()));
  }
  return result;
}

double interference_of(const Application& application, const Target& target, std::size_t kind, AccessLoad other) {
  if (const double own = application.accesses.interference(kind, other); own > 0) return own;
  if (target.record == nullptr) return 0;
  const auto& known = target.record->beside[number(application.accesses.load(kind))][number(other)];
  return known.alone <= most_alone ? known.contention.interference() : 0;
}

}  // namespace hocket::model
