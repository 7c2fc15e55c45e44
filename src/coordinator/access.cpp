#include "coordinator/access.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace hocket::coordinator {
namespace {

using model::Application;
using model::Holder;
using model::Member;
using model::Request;
using model::RequestState;
using model::Target;

constexpr Time never{};  // of a target's wake

std::optional<model::Requests::iterator> find(const Member& member, RequestId id) {
  for (const auto request : member.requests) {
    if (request->id == id) return request;
  }
  return std::nullopt;
}

std::optional<model::Holders::iterator> find_holder(const Application& application, const Target& target) {
  for (const auto holder : application.held) {
    if (holder->target == &target) return holder;
  }
  return std::nullopt;
}

event::QueuedIo queued(const Request& request, std::int64_t position) {
  event::QueuedIo answer{request.id, position, {}};
  const model::Holders& holders = request.target->holders;
  if (!holders.empty()) answer.behind = holders.front().application->name;
  return answer;
}

}  // namespace

// ---- what members do ---------------------------------------------------------------------------------------------

void Access::start(const Moment& moment, Member& member, const event::StartIo& start) {
  const Time now = moment.now;
  Application& application = *member.application;
  free_kept(application, [now](const Holder& holder) { return holder.kept_until <= now; });

  Target& target = cluster_.target(start.target);
  free_kept_long_enough(target, now);
  const bool yields = is_turn_over(target, now);
  if (yields) free_kept(application, [&](const Holder& holder) { return holder.target == &target; });
  if (target.waiting.empty()) target.remind = now + settings_.keep_alive;
  target.waiting.push_back(
      {start.request, member.id, application.id, &target, RequestState::queued, start.bytes, now, {}});
  const Place request = std::prev(target.waiting.end());
  member.requests.push_back(request);
  member.last_request = start.request;
  application.target = start.target;
  application.count_requests(+1, 0, now);

  renew_leases(member, target, now);
  if (!yields && find_holder(application, target)) grant(moment, member, request);
  touch(target);
  settle(moment);
  if (request->state != RequestState::queued) return;
  bound_wait(member, request, now);
  if (request->too_slow != Time{} && request->too_slow <= now) {
    apply(moment, member, request, RequestInput::grant);
    return settle(moment);
  }
  const auto position = static_cast<std::int64_t>(target.waiting.size());
  moment.commands.push_back({member.id, queued(*request, position)});
}

void Access::finish(const Moment& moment, Member& member, const event::FinishIo& finish) {
  const auto request = find(member, finish.request);
  if (!request) return;
  renew_leases(member, *(*request)->target, moment.now);
  apply(moment, member, *request, RequestInput::finish, finish.phase_over ? After::free : After::keep);
  settle(moment);
}

void Access::renew(const Moment& moment, Member& member, RequestId request) {
  if (const auto found = find(member, request)) apply(moment, member, *found, RequestInput::renew);
}

void Access::end_phase(const Moment& moment, Application& application) {
  free_kept(application, [](const Holder&) { return true; });
  settle(moment);
}

void Access::leave(const Moment& moment, Member& member) {
  while (!member.requests.empty()) apply(moment, member, member.requests.back(), RequestInput::leave);
  Application& application = *member.application;
  if (application.members.size() == 1) free_kept(application, [](const Holder&) { return true; });
  settle(moment);
}

void Access::set_policy(const Moment& moment, const policy::Policy& policy) {
  policy_ = &policy;
  for (const auto& [wake, target] : timers_) touch(*target);
  settle(moment);
}

// ---- what time does ----------------------------------------------------------------------------------------------

std::optional<Time> Access::deadline() const {
  std::optional<Time> next;
  if (!granted_.empty()) next = granted_.front().expires;
  if (!timers_.empty()) next = std::min(next.value_or(Time::max()), timers_.begin()->first.first);
  if (!too_slow_.empty()) next = std::min(next.value_or(Time::max()), std::get<Time>(too_slow_.begin()->first));
  return next;
}

void Access::tick(const Moment& moment) {
  expire_leases(moment);
  for (auto timer = timers_.begin(); timer != timers_.end() && timer->first.first <= moment.now; ++timer) {
    free_kept_long_enough(*timer->second, moment.now);
    touch(*timer->second);
  }
  settle(moment);
  grant_too_slow(moment);
}

// ---- the bound on waiting ----------------------------------------------------------------------------------------

// From then on the application will have waited for more than the bound allows, a share of its time without waits: what
// it would have taken uncoordinated. The moment is exact while it only waits; work in between moves it away.
void Access::bound_wait(const model::Member& member, Place request, Time now) {
  const double most = settings_.most_slowdown;
  if (most <= 0 || most >= 1) return;
  forget_bound(request);
  const Application& application = *member.application;
  const bool waits = application.activity == model::Activity::waiting;
  const double waited = to_s(application.waited) + (waits ? to_s(now - application.since) : 0);
  const double elapsed = to_s(now - application.arrived);
  constexpr double longest_s = 1e9;
  request->too_slow = now + from_s(std::clamp(most * (elapsed - waited) - waited, 0.0, longest_s));
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

void Access::expire_leases(const Moment& moment) {
  while (!granted_.empty() && granted_.front().expires <= moment.now) {
    const Place request = granted_.begin();
    Member& member = *cluster_.find(request->member);
    moment.commands.push_back(
        {member.id, event::LeaseExpired{request->id, member.application->name, request->target->name}});
    apply(moment, member, request, RequestInput::expire);
  }
}

void Access::free_kept_long_enough(Target& target, Time now) {
  while (!target.kept.empty() && target.kept.begin()->first.first <= now) {
    free_holder(target.kept.begin()->second);
  }
}

// ---- what happens to a request -----------------------------------------------------------------------------------

void Access::apply(const Moment& moment, Member& member, Place request, RequestInput input, After after) {
  switch (action_of(request->state, input)) {
    case RequestAction::ignore: return;
    case RequestAction::grant:
      grant(moment, member, request);
      grant_queued_of(moment, *member.application, *request->target);
      return;
    case RequestAction::withdraw: return withdraw(member, request, moment.now);
    case RequestAction::release: return give_back(member, request, after, moment.now);
    case RequestAction::revoke: return give_back(member, request, After::free, moment.now);
    case RequestAction::renew: return renew_leases(member, *request->target, moment.now);
  }
}

void Access::grant(const Moment& moment, const Member& member, Place request) {
  Target& target = *request->target;
  forget_bound(request);
  granted_.splice(granted_.end(), target.waiting, request);
  request->state = RequestState::granted;
  request->expires = moment.now + settings_.lease;

  Application& application = *member.application;
  auto holder = find_holder(application, target);
  if (!holder) {
    holder = target.holders.insert(target.holders.end(), {&application, &target, 0, {}});
    application.held.push_back(*holder);
  } else if ((*holder)->grants == 0) {
    target.kept.erase({(*holder)->kept_until, application.id});
  }
  ++(*holder)->grants;
  application.count_requests(-1, +1, moment.now);
  moment.commands.push_back({member.id, event::GrantIo{request->id, moment.now - request->since, target.name}});
}

// Applications exclude each other, not themselves: with one request, all of the application on that target are granted.
void Access::grant_queued_of(const Moment& moment, const Application& application, const Target& target) {
  for (const Member* member : application.members) {
    for (const Place request : member->requests) {
      if (request->target == &target && request->state == RequestState::queued) grant(moment, *member, request);
    }
  }
}

void Access::withdraw(Member& member, Place request, Time now) {
  Target& target = *request->target;
  forget_bound(request);
  std::erase(member.requests, request);
  target.waiting.erase(request);
  member.application->count_requests(-1, 0, now);
  touch(target);
}

void Access::give_back(Member& member, Place request, After after, Time now) {
  Application& application = *member.application;
  Target& target = *request->target;
  std::erase(member.requests, request);
  granted_.erase(request);
  application.count_requests(0, -1, now);

  const auto holder = *find_holder(application, target);
  touch(target);
  if (--holder->grants > 0) return;
  if (after == After::free || settings_.linger == Duration{} || is_turn_over(target, now)) return free_holder(holder);
  holder->kept_until = now + settings_.linger;
  target.kept.emplace(std::pair{holder->kept_until, application.id}, holder);
}

// A member that does anything about a target lives, so all its leases there begin anew.
void Access::renew_leases(const Member& member, const Target& target, Time now) {
  for (const Place request : member.requests) {
    if (request->target != &target || request->state != RequestState::granted) continue;
    request->expires = now + settings_.lease;
    granted_.splice(granted_.end(), granted_, request);
  }
}

bool Access::is_turn_over(const Target& target, Time now) const {
  return !target.waiting.empty() && now - target.waiting.front().since >= settings_.turn;
}

// ---- holders -----------------------------------------------------------------------------------------------------

// Precondition: no grants.
void Access::free_holder(model::Holders::iterator holder) {
  Target& target = *holder->target;
  target.kept.erase({holder->kept_until, holder->application->id});
  std::erase(holder->application->held, holder);
  target.holders.erase(holder);
  touch(target);
}

template <class Condition>
void Access::free_kept(Application& application, Condition condition) {
  for (std::size_t i = application.held.size(); i-- > 0;) {
    const auto holder = application.held[i];
    if (holder->grants == 0 && condition(*holder)) free_holder(holder);
  }
}

// ---- settling ----------------------------------------------------------------------------------------------------

void Access::settle(const Moment& moment) {
  std::sort(touched_.begin(), touched_.end(), [](const Target* a, const Target* b) { return a->number < b->number; });
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (Target* target : touched_) {
    if (!target->waiting.empty()) ask_policy(moment, *target);
    if (std::holds_alternative<event::Tick>(moment.event.body)) send_reminders(moment, *target);
    set_timer(*target);
    cluster_.drop_if_idle(*target);
  }
  touched_.clear();
}

void Access::ask_policy(const Moment& moment, const Target& target) {
  for (const policy::Grant& chosen : policy_->decide({cluster_, target, moment.now}, moment.event)) {
    Member* member = cluster_.find(chosen.member);
    const auto request = member ? find(*member, chosen.request) : std::nullopt;
    if (request && (*request)->target == &target) apply(moment, *member, *request, RequestInput::grant);
  }
}

void Access::send_reminders(const Moment& moment, Target& target) {
  if (target.waiting.empty() || target.remind > moment.now) return;
  target.remind = moment.now + settings_.keep_alive;
  std::int64_t position = 0;
  for (const Request& request : target.waiting) {
    moment.commands.push_back({request.member, queued(request, ++position)});
  }
}

void Access::set_timer(Target& target) {
  Time wake = never;
  if (!target.waiting.empty()) {
    wake = target.remind;
    if (!target.kept.empty()) wake = std::min(wake, target.kept.begin()->first.first);
  }
  if (wake == target.wake) return;
  if (target.wake != never) timers_.erase({target.wake, target.number});
  if (wake != never) timers_.emplace(std::pair{wake, target.number}, &target);
  target.wake = wake;
}

}  // namespace hocket::coordinator
