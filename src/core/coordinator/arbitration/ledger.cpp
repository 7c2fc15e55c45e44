#include "coordinator/arbitration/ledger.hpp"

#include <algorithm>
#include <utility>

#include "coordinator/arbitration/places.hpp"

namespace hocket::coordinator {

using model::Application;
using model::Holder;
using model::Member;
using model::Request;
using model::RequestState;
using model::Target;

namespace {

// Counts a request among those of its application. A write-back of an I/O server is none: the program does not wait.
// A delegation is no operation at all.
void count(Application& application, const Request& request, std::int64_t waiting, std::int64_t granted, Time now) {
  if (request.is_access()) application.count_requests(waiting, granted, now);
}

}  // namespace

Ledger::RequestPlace Ledger::add(Member& member, Request request, Time now) {
  Target& target = *request.target;
  request.state = RequestState::queued;
  facts(request).order = ++facts(target).arrivals;
  request.since = now;
  if (!request.parts.is_whole()) ++facts(target).parted;
  if (target.waiting.empty()) facts(target).remind = now + keep_alive_;
  const RequestPlace place = requests_.append(target.waiting, request);
  member.requests.push_back(place);
  count(*member.application, *place, +1, 0, now);
  return place;
}

void Ledger::withdraw(Member& member, RequestPlace request, Time now) {
  Target& target = *request->target;
  forget_bound(request);
  target.last_wait = now;
  if (request->paused) --facts(target).paused;
  if (!request->parts.is_whole()) --facts(target).parted;
  count(*member.application, *request, -1, 0, now);
  member.requests.remove(request);
  requests_.remove(target.waiting, request);
}

Ledger::HolderPlace Ledger::grant(const Member& member, RequestPlace request, Time now) {
  Target& target = *request->target;
  Application& application = *member.application;
  forget_bound(request);
  if (request->since < now) target.last_wait = now;
  granted_.splice(granted_.end(), target.waiting, request);
  request->state = RequestState::granted;
  if (std::exchange(request->paused, false)) --facts(target).paused;
  facts(*request).told = false;
  request->granted = now;
  facts(*request).expires = now + lease_;
  auto holder = find_holder(application, target);
  if (!holder) {
    holder = holders_.append(target.holders, {&application, &target, 0, now});
    application.held.push_back(*holder);
  } else if ((*holder)->grants == 0) {
    facts(target).kept.erase({of(**holder).kept_until, application.id});
  }
  if ((*holder)->grants == 0) (*holder)->parts = request->parts;
  (*holder)->parts.add(request->parts);
  ++(*holder)->grants;
  (*holder)->stores += request->is_access() ? 0 : 1;
  count(application, *request, -1, +1, now);
  return *holder;
}

// The request keeps its order of arrival.
Ledger::HolderPlace Ledger::suspend(const Member& member, RequestPlace request, Time now) {
  Target& target = *request->target;
  if (target.waiting.empty()) facts(target).remind = now + keep_alive_;
  const auto later = [&](const Request& other) { return of(other).order > of(*request).order; };
  const RequestPlace place = std::find_if(target.waiting.begin(), target.waiting.end(), later);
  target.waiting.splice(place, has_lease(*request) ? granted_ : unleased_, request);
  request->state = RequestState::queued;
  request->paused = true;
  ++facts(target).paused;
  request->since = now;
  count(*member.application, *request, +1, -1, now);
  const HolderPlace holder = *find_holder(*member.application, target);
  --holder->grants;
  holder->stores -= request->is_access() ? 0 : 1;
  set_parts(holder, request->parts);
  return holder;
}

void Ledger::set_parts(HolderPlace holder, const model::PartSet& ended) {
  if (of(*holder->target).parted == 0 && holder->parts.is_whole()) return;
  std::optional<model::PartSet> parts;
  each_request(*holder->application, *holder->target, RequestState::granted, [&](const Member&, RequestPlace one) {
    if (parts)
      parts->add(one->parts);
    else
      parts = one->parts;
  });
  holder->parts = parts.value_or(ended);
}

Ledger::HolderPlace Ledger::end(Member& member, RequestPlace request, Time now) {
  const HolderPlace holder = *find_holder(*member.application, *request->target);
  member.requests.remove(request);
  count(*member.application, *request, 0, -1, now);
  --holder->grants;
  holder->stores -= request->is_access() ? 0 : 1;
  if (!request->parts.is_whole()) --facts(*request->target).parted;
  set_parts(holder, request->parts);
  if (request->delegation) {
    const std::int64_t recalled = of(*request).told ? 1 : 0;
    --facts(*request->target).delegated;
    --member.application->delegations;
    facts(*request->target).recalled -= recalled;
    member.application->recalled -= recalled;
  }
  requests_.remove(has_lease(*request) ? granted_ : unleased_, request);
  return holder;
}

void Ledger::renew(const Member& member, const Target& target, Time now) {
  for (const RequestPlace request : member.requests) {
    if (request->target != &target || request->state != RequestState::granted) continue;
    if (request->delegation || !has_lease(*request)) continue;
    facts(*request).expires = now + lease_;
    granted_.splice(granted_.end(), granted_, request);
  }
}

void Ledger::delegate(Member& member, const Request& request, Time now) {
  Target& target = *request.target;
  Request delegation{request.id, request.member, request.application, request.of, &target, RequestState::granted};
  delegation.since = delegation.granted = now;
  delegation.parts = request.parts;
  delegation.delegation = true;
  if (!delegation.parts.is_whole()) ++facts(target).parted;
  ++facts(target).delegated;
  ++member.application->delegations;
  member.requests.push_back(requests_.append(unleased_, delegation));
  const HolderPlace holder = *find_holder(*member.application, target);
  ++holder->grants;
  ++holder->stores;
}

void Ledger::exempt(RequestPlace request) {
  if (!has_lease(*request)) return;
  facts(*request).expires = {};
  unleased_.splice(unleased_.end(), granted_, request);
}

void Ledger::begin_lease(RequestPlace request, Time now) {
  facts(*request).expires = now + lease_;
  granted_.splice(granted_.end(), unleased_, request);
}

void Ledger::recall(const Member& member, RequestPlace delegation, Time now) {
  facts(*delegation).told = true;
  ++facts(*delegation->target).recalled;
  ++member.application->recalled;
  begin_lease(delegation, now);
}

void Ledger::begin_leases(const Member& member, const Request& delegation, Time now) {
  for (const RequestPlace request : member.requests) {
    const bool granted = request->under == delegation.id && request->state == RequestState::granted;
    if (granted && !request->delegation && !has_lease(*request)) begin_lease(request, now);
  }
}

void Ledger::begin_pause(Holder& holder, Time now) {
  holder.pausing = true;
  ++facts(*holder.target).pausing;
  facts(holder).told = now;
}

void Ledger::end_pause(Holder& holder) {
  holder.pausing = false;
  --facts(*holder.target).pausing;
}

void Ledger::keep(HolderPlace holder, Time until) {
  facts(*holder).kept_until = until;
  facts(*holder->target).kept.emplace(std::pair{until, holder->application->id}, holder);
}

void Ledger::free(HolderPlace holder) {
  Target& target = *holder->target;
  if (holder->pausing) --facts(target).pausing;
  facts(target).kept.erase({of(*holder).kept_until, holder->application->id});
  holder->application->held.remove(holder);
  holders_.remove(target.holders, holder);
}

void Ledger::bound(RequestPlace request, Time at) {
  forget_bound(request);
  facts(*request).too_slow = at;
  bounded_.emplace(std::tuple{at, request->member, request->id}, request);
}

void Ledger::forget_bound(RequestPlace request) {
  if (facts(*request).too_slow == Time{}) return;
  bounded_.erase({facts(*request).too_slow, request->member, request->id});
  facts(*request).too_slow = {};
}

void Ledger::set_timer(Target& target, Time wake) {
  if (wake == facts(target).wake) return;
  if (facts(target).wake != Time{}) timers_.erase({facts(target).wake, target.number});
  if (wake != Time{}) timers_.emplace(std::pair{wake, target.number}, &target);
  facts(target).wake = wake;
}

bool Ledger::remind(Target& target, Time now) const {
  if (target.waiting.empty() || facts(target).remind > now) return false;
  facts(target).remind = now + keep_alive_;
  return true;
}

std::optional<Ledger::RequestPlace> Ledger::expired(Time now) {
  if (granted_.empty() || of(granted_.front()).expires > now) return std::nullopt;
  return granted_.begin();
}

std::optional<Ledger::RequestPlace> Ledger::overdue(Time now) const {
  if (bounded_.empty() || std::get<Time>(bounded_.begin()->first) > now) return std::nullopt;
  return bounded_.begin()->second;
}

std::optional<Time> Ledger::deadline() const {
  std::optional<Time> next;
  if (!granted_.empty()) next = of(granted_.front()).expires;
  if (!timers_.empty()) next = std::min(next.value_or(Time::max()), timers_.begin()->first.first);
  if (!bounded_.empty()) next = std::min(next.value_or(Time::max()), std::get<Time>(bounded_.begin()->first));
  return next;
}

}  // namespace hocket::coordinator
