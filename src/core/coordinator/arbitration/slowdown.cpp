// This part of AccessController bounds how much slower than uncoordinated an application gets. If an application would
// exceed the bound, its request is granted at once.
//
// The model keeps what an application has lost or gained so far. For each access that has ended, this is its time with
// waits, less the time it would have taken if nobody had waited (model/uncoordinated.hpp). For a waiting access the
// same difference is expected, as if it were granted at once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "coordinator/arbitration/access.hpp"
#include "model/occupancy.hpp"
#include "policy/plan.hpp"

namespace hocket::coordinator {
namespace {

using model::Application;
using model::Member;
using model::Request;
using model::Target;

// Bounds of the estimate: seconds, applications, and the least remaining fraction of an access.
constexpr double longest_s = 1e9;
constexpr double rounding_s = 0.5e-9;
constexpr std::size_t most_looked_at = 32;  // applications considered of those that want the target
// Every bound has this much in addition. A wait that is cut short costs the wait and the sharing after it; without the
// addition, errors of the estimates would cut most waits of an application's first seconds.
constexpr double least_budget_s = 0.1;
constexpr double least_left = 0.02;  // remaining fraction of an access that should have ended

// Returns the mean slowdown beside the applications that hold the target. Without holders, it is the slowdown beside an
// application like this one.
model::Slowness slowness_of(const Application& application, const Request& request, double assumed) {
  const Target& target = *request.target;
  double sum = 0;
  double count = 0;
  const auto add = [&](const Application& other, std::size_t kind) {
    if (&other == &application) return;
    const double beside = model::interference_of(application, target, request.kind, other.accesses.load(kind));
    sum += beside > 0 ? beside : assumed;
    ++count;
  };
  for (const model::Holder& holder : target.holders) {
    if (holder.parts.meets(request.parts)) add(*holder.application, holder.occupancy.kind);
  }
  if (count > 0) return {sum / count, 0};
  const double alike =
      model::interference_of(application, target, request.kind, application.accesses.load(request.kind));
  return {alike > 0 ? alike : assumed, 0};
}

// End of the access in seconds from now: if granted now, beside the holders, and without coordination.
struct Ends {
  double granted_s;
  double uncoordinated_s;
};

// Remaining time of an application's I/O phase in seconds: as it is, and as it would be without coordination.
struct RemainingTime {
  double now_s;
  double uncoordinated_s;
};

RemainingTime left_of(const Target& target, const Application& application, const model::Remaining& remaining) {
  const double left_s = std::max({remaining.left_s, least_left * remaining.access_s, rounding_s});
  const model::Uncoordinated::SimulatedAccess* access = target.uncoordinated.find(application.id);
  if (access == nullptr || !access->goes_on) return {left_s, left_s};
  return {left_s, std::max(rounding_s, left_s + remaining.served_s - access->done_s)};
}

Ends ends_of(const Application& application, const Request& request, Time now, double assumed, bool few) {
  const Target& target = *request.target;
  const model::Slowness slowness = slowness_of(application, request, assumed);
  const auto job = [&](double left_s) { return policy::PhaseJob{1, left_s, left_s, 0, slowness, 1, 0}; };
  model::Remaining remaining = model::remaining_of(application, request);
  // If many applications run, the accesses after this one are too uncertain to be weighed against its wait.
  if (!few) remaining.left_s = remaining.access_s - remaining.served_s;
  const RemainingTime own = left_of(target, application, remaining);
  std::vector<policy::PhaseJob> granted{job(own.now_s)};
  std::vector<policy::PhaseJob> uncoordinated{job(own.uncoordinated_s)};
  for (const model::Holder& holder : target.holders) {
    if (holder.application == &application || holder.accesses() == 0 || granted.size() >= most_looked_at) continue;
    if (!holder.parts.meets(request.parts)) continue;
    const RemainingTime left = left_of(target, *holder.application, model::remaining_of(holder, now));
    granted.push_back(job(left.now_s));
    uncoordinated.push_back(job(left.uncoordinated_s));
  }
  const Application* last = nullptr;  // an application with several waiting requests counts once
  for (const Request& other : target.waiting) {
    if (uncoordinated.size() >= most_looked_at) break;
    const Application* waiting = other.of;
    if (waiting == &application || waiting == last || !other.parts.meets(request.parts)) continue;
    last = waiting;
    uncoordinated.push_back(job(left_of(target, *waiting, model::remaining_of(*waiting, other)).uncoordinated_s));
  }
  // Accesses that have ended, but would still be under way without coordination.
  for (const model::Uncoordinated::SimulatedAccess& access : target.uncoordinated.accesses()) {
    if (uncoordinated.size() >= 2 * most_looked_at) break;
    if (!access.goes_on && access.application != application.id && access.parts.meets(request.parts)) {
      uncoordinated.push_back(job(std::max(rounding_s, access.size_s - access.done_s)));
    }
  }
  return {policy::expect_together(granted).front().end_s, policy::expect_together(uncoordinated).front().end_s};
}

}  // namespace

void AccessController::watch_slowdown(const Application& application, const Request& request, Time now) {
  Target& target = *request.target;
  if (access_settings_.most_slowdown <= 0 || request.write_back) return;
  target.uncoordinated.advance(now);
  const model::Slowness slowness = slowness_of(application, request, access_settings_.interference);
  const model::Remaining remaining = model::remaining_of(application, request);
  const double expected_s = remaining.known ? remaining.access_s : std::numeric_limits<double>::infinity();
  target.uncoordinated.begin(application.id, slowness, 1, expected_s, now, request.parts);
}

// Publishes for operators the effect of coordination on an application, and the error of that estimate.
void AccessController::tell_slowdown(const Moment& moment, const Application& application) {
  if (access_settings_.most_slowdown <= 0 || application.history.phases() == 0) return;
  event::Decision record = decision_on(application, application.target, "estimate");
  const double runs_s = std::max(rounding_s, to_s(moment.now - application.arrived));
  const model::RunningMean& off = application.late_error;
  record.reason = event::SlowdownEstimate{application.late_s, runs_s, off.mean(), off.count()};
  moment.commands.push_back({{}, std::move(record)});
}

bool AccessController::is_small(const Application& application, const Request& request) const {
  if (settings_.small_access == Duration{}) return false;
  const model::Remaining remaining = model::remaining_of(application, request);
  return remaining.known && remaining.access_s + remaining.spread_s <= to_s(settings_.small_access);
}

// The computed time is exact while the request waits and no application comes or goes. It is computed again when it has
// come.
void AccessController::bound_wait(const Member& member, Ledger::RequestPlace request, Time now) {
  const double most = access_settings_.most_slowdown;
  if (most <= 0 || most >= 1 || request->write_back) return;
  const Application& application = *member.application;
  request->target->uncoordinated.advance(now);
  const Ends ends = ends_of(application, *request, now, access_settings_.interference, cluster_.few_run());
  const double elapsed_s = to_s(request->since - application.arrived);
  const double late_s = application.late_s;
  const double budget_s = least_budget_s + most * std::max(0.0, elapsed_s - std::max(0.0, late_s)) - late_s;
  const double wait_s = budget_s + ends.uncoordinated_s - ends.granted_s;
  ledger_.bound(request, now + from_s(std::clamp(wait_s, 0.0, longest_s) + rounding_s));
}

void AccessController::grant_too_slow(const Moment& moment) {
  while (const auto request = ledger_.overdue(moment.now)) {
    Member& member = *cluster_.find((*request)->member);
    bound_wait(member, *request, moment.now);
    if (Ledger::of(**request).too_slow <= moment.now) apply(moment, member, *request, RequestInput::grant);
  }
  settle(moment);
}

}  // namespace hocket::coordinator
