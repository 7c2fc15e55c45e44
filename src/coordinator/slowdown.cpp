// The bound on how much slower than uncoordinated an application gets: who has no time to lose waits no longer.
//
// What an application has lost or gained so far is kept by the model: for each access that has ended, the time that it
// took with its waits, less the time that it would have taken if nobody had waited (model/uncoordinated.hpp). Of an
// access that waits, the same is expected, as if it were granted at once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "coordinator/access.hpp"
#include "model/occupancy.hpp"

namespace hocket::coordinator {
namespace {

using model::Application;
using model::Member;
using model::Request;
using model::Target;

constexpr double longest_s = 1e9;
constexpr double rounding_s = 0.5e-9;

// Beside those who use or want the target now, whichever they are.
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
  for (const model::Holder& holder : target.holders) add(*holder.application, holder.occupancy.kind);
  if (count > 0) return {sum / count, 0};
  const double alike =
      model::interference_of(application, target, request.kind, application.accesses.load(request.kind));
  return {alike > 0 ? alike : assumed, 0};
}

// When the access would end: granted now, beside those who have the target, and uncoordinated. In seconds from now.
struct Ends {
  double granted_s;
  double uncoordinated_s;
};

Ends ends_of(const Application& application, const Request& request, double assumed) {
  const Target& target = *request.target;
  const model::Slowness slowness = slowness_of(application, request, assumed);
  const double access_s = model::remaining_of(application, request).access_s;
  model::Use now{1, 1};
  for (const model::Holder& holder : target.holders) {
    if (holder.grants == 0) continue;
    now.users += 1;
    now.demanded += 1;
  }
  const model::Use uncoordinated = target.uncoordinated.use();
  const model::Uncoordinated::Access* access = target.uncoordinated.find(application.id);
  const double left_s = access_s - (access != nullptr ? access->done_s : 0);
  const double uncoordinated_s = left_s > 0 ? left_s * model::slowdown(slowness, uncoordinated) : 0;
  return {access_s * model::slowdown(slowness, now), uncoordinated_s};
}

}  // namespace

double Access::most_slowdown() const {
  return settings_.most_slowdown < 0 ? policy_->most_slowdown : settings_.most_slowdown;
}

void Access::watch_slowdown(const Application& application, const Request& request, Time now) {
  Target& target = *request.target;
  if (access_settings_.most_slowdown <= 0) return;
  target.uncoordinated.advance(now);
  const model::Slowness slowness = slowness_of(application, request, access_settings_.interference);
  const model::Remaining remaining = model::remaining_of(application, request);
  const double expected_s = remaining.known ? remaining.access_s : std::numeric_limits<double>::infinity();
  target.uncoordinated.begin(application.id, slowness, 1, expected_s, now);
}

bool Access::is_small(const Application& application, const Request& request) const {
  if (settings_.small_access == Duration{}) return false;
  const model::Remaining remaining = model::remaining_of(application, request);
  return remaining.known && remaining.access_s + remaining.spread_s <= to_s(settings_.small_access);
}

// The moment is exact while it only waits and nobody else comes or goes; it is reckoned again when it has come.
void Access::bound_wait(const Member& member, Place request, Time now) {
  const double most = access_settings_.most_slowdown;
  if (most <= 0 || most >= 1) return;
  forget_bound(request);
  const Application& application = *member.application;
  request->target->uncoordinated.advance(now);
  const Ends ends = ends_of(application, *request, access_settings_.interference);
  const double elapsed_s = to_s(request->since - application.arrived);
  const double late_s = application.late_s;
  const double budget_s = most * std::max(0.0, elapsed_s - std::max(0.0, late_s)) - late_s;
  const double wait_s = budget_s + ends.uncoordinated_s - ends.granted_s;
  request->too_slow = now + from_s(std::clamp(wait_s, 0.0, longest_s) + rounding_s);
  too_slow_.emplace(std::tuple{request->too_slow, request->member, request->id}, request);
}

void Access::forget_bound(Place request) {
  if (request->too_slow == Time{}) return;
  too_slow_.erase({request->too_slow, request->member, request->id});
  request->too_slow = {};
}

void Access::grant_too_slow(const Moment& moment) {
  while (!too_slow_.empty() && std::get<Time>(too_slow_.begin()->first) <= moment.now) {
    const Place request = too_slow_.begin()->second;
    Member& member = *cluster_.find(request->member);
    bound_wait(member, request, moment.now);
    if (request->too_slow <= moment.now) apply(moment, member, request, RequestInput::grant);
  }
  settle(moment);
}

}  // namespace hocket::coordinator
