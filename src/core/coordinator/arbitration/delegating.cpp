// This part of AccessController delegates targets. While an application is alone on a target, its members begin
// operations there without a grant, and report them in batches. When another application asks, the delegations are
// recalled, and no policy is asked about the target before they were returned: what the members have begun by then has
// come before RETURN_IO, so policies know it.
#include <algorithm>

#include "coordinator/arbitration/access.hpp"
#include "coordinator/arbitration/parts.hpp"
#include "coordinator/arbitration/places.hpp"

namespace hocket::coordinator {
namespace {

using model::Application;
using model::Holder;
using model::Member;
using model::PartSet;
using model::Request;
using model::RequestState;
using model::Target;

// Most delegations of a member. A member that uses ever other parts of a target asks for grants.
constexpr std::ptrdiff_t most_delegations = 16;

DelegationState state_of(const Request& delegation) {
  return Ledger::of(delegation).told ? DelegationState::recalled : DelegationState::held;
}

// True if only this application holds the target or waits for it.
bool is_alone(const Application& application, const Target& target) {
  const auto own = [&](const auto& one) { return one.application == &application; };
  const auto asks = [&](const Request& one) { return one.of == &application; };
  return std::all_of(target.holders.begin(), target.holders.end(), own) &&
         std::all_of(target.waiting.begin(), target.waiting.end(), asks);
}

// Calls `visit(member, delegation)` for each delegation of the holder that meets the parts.
template <class Visit>
void each_delegation(const Holder& holder, const PartSet& parts, Visit visit) {
  if (holder.stores == 0) return;
  each_request(*holder.application, *holder.target, RequestState::granted,
               [&](const Member& member, Ledger::RequestPlace request) {
                 if (request->delegation && request->parts.meets(parts)) visit(member, request);
               });
}

}  // namespace

// An application is no longer alone from its request on, and may be alone again when the request has ended.
void AccessController::note_use(const Application& application, const Target& target, Time now) {
  model::TargetRecord* record = target.record;
  if (record == nullptr || record->only_user == application.id) return;
  record->only_user = application.id;
  record->only_since = now;
}

void AccessController::note_end_of_use(const Application& application, const Target& target, Time now) {
  model::TargetRecord* record = target.record;
  if (record != nullptr && record->only_user != application.id) record->only_since = now;
}

bool AccessController::may_delegate(const Moment& moment, const Member& member, const Request& request) const {
  const Target& target = *request.target;
  if (settings_.delegate_after == Duration{} || !member.delegations || !request.is_access()) return false;
  if (request.state != RequestState::granted || target.record == nullptr) return false;
  const model::TargetRecord& record = *target.record;
  if (record.only_user != request.application || moment.now - record.only_since < settings_.delegate_after)
    return false;
  const auto is_delegation = [](Ledger::RequestPlace one) { return one->delegation; };
  const auto is_same = [&](Ledger::RequestPlace one) {
    return one->delegation && one->target == &target && one->parts == request.parts;
  };
  const auto& all = member.requests;
  return is_alone(*member.application, target) && !(*find_holder(*member.application, target))->pausing &&
         std::none_of(all.begin(), all.end(), is_same) &&
         std::count_if(all.begin(), all.end(), is_delegation) < most_delegations;
}

// The GRANT_IO is not sent yet: it is marked. The operation that it grants is the first one under the delegation.
void AccessController::delegate_if_alone(const Moment& moment, Member& member, Ledger::RequestPlace request) {
  if (!may_delegate(moment, member, *request)) return;
  for (Command& command : moment.commands) {
    auto* grant = std::get_if<event::GrantIo>(&command.body);
    if (grant == nullptr || command.to != member.id || grant->request != request->id) continue;
    grant->delegated = true;
    ledger_.delegate(member, *request, moment.now);
    request->under = request->id;
    return ledger_.exempt(request);
  }
}

// If the lease of the delegation has expired, the operation goes on without a grant, as LEASE_EXPIRED has told its
// member.
void AccessController::begun(const Moment& moment, Member& member, const event::StartIo& start) {
  member.last_request = start.request;
  const auto delegation = find_delegation(member, start.delegation);
  if (!delegation) return;
  Application& application = *member.application;
  Target& target = *(*delegation)->target;
  const Moment then = when(moment, application, start.ago, target.served);
  Request asked{start.request, member.id, application.id, &application, &target, RequestState::queued, start.bytes};
  asked.parts = (*delegation)->parts;
  asked.under = start.delegation;
  const Ledger::RequestPlace request = ledger_.add(member, asked, then.now);
  event::StartIo real = start;
  real.target = target.name;
  begin_access(*request, application, real, then.now);
  grant(then, member, request, GrantAnswer::none);
  ledger_.renew(member, target, moment.now);
  if (state_of(**delegation) == DelegationState::held) ledger_.exempt(request);
  touch(target);
  settle(moment);
}

// What a member says of time is not trusted: the model's records of the application and of the target never go back.
Moment AccessController::when(const Moment& moment, const Application& application, Duration ago, Time first) {
  const Time earliest = std::min(std::max(application.since, first), moment.now);
  const Time then = moment.now - std::clamp(ago, Duration{}, moment.now - Time{});
  return {moment.event, std::max(then, earliest), moment.commands};
}

void AccessController::recall_for(const Moment& moment, const Request& request) {
  Target& target = *request.target;
  if (Ledger::of(target).delegated == 0) return;
  for (const Holder& holder : target.holders) {
    if (holder.application != request.of) recall(moment, holder, request.parts, request.of->name);
  }
}

void AccessController::recall(const Moment& moment, const Holder& holder, const PartSet& parts,
                              const std::string& because_of) {
  each_delegation(holder, parts, [&](const Member& member, Ledger::RequestPlace delegation) {
    if (delegation_step(state_of(*delegation), DelegationInput::want).action != DelegationAction::recall) return;
    ledger_.recall(member, delegation, moment.now);
    ledger_.begin_leases(member, *delegation, moment.now);
    moment.commands.push_back({member.id, event::RecallIo{delegation->id, because_of, holder.target->name}});
  });
}

// What was set may concern any target, and a delegation comes again with the member's next request.
void AccessController::recall_all(const Moment& moment) {
  for (const auto& [id, application] : cluster_.applications())
    for (const auto holder : application.held) recall(moment, *holder, PartSet{}, {});
}

bool AccessController::awaits_return(const Target& target, const PartSet& parts) {
  if (Ledger::of(target).recalled == 0) return false;
  const PartSet reach = reach_of(target, parts);
  bool awaits = false;
  for (const Holder& holder : target.holders) {
    each_delegation(holder, reach, [&](const Member&, Ledger::RequestPlace delegation) {
      awaits |= state_of(*delegation) == DelegationState::recalled;
    });
  }
  return awaits;
}

void AccessController::returned(const Moment& moment, Member& member, const event::ReturnIo& returned) {
  const auto found = find_delegation(member, returned.request);
  if (!found) return;
  const std::string name = (*found)->target->name;
  end_delegation(moment, member, *found, DelegationInput::returned);
  settle(moment);  // a target that nobody uses any more is gone now
  if (const Target* target = cluster_.find_target(name)) tell_waits(moment, *target);
}

void AccessController::answered(const Member& member, const event::ReturnIo& returned) {
  const auto found = find_delegation(member, returned.request);
  if (found) ledger_.exempt(*found);
}

void AccessController::end_delegation(const Moment& moment, Member& member, Ledger::RequestPlace delegation,
                                      DelegationInput why) {
  const DelegationAction action = delegation_step(state_of(*delegation), why).action;
  if (action == DelegationAction::nothing) return;
  ledger_.begin_leases(member, *delegation, moment.now);
  const bool ends = action == DelegationAction::end;
  give_back(member, delegation, ends ? RequestAction::release : RequestAction::revoke,
            ends ? IdleHold::keep : IdleHold::free, moment.now);
}

// A wait is told when it is known that it is one: the answer to RECALL_IO has come, and the request still waits.
void AccessController::tell_waits(const Moment& moment, const Target& target) {
  if (!settings_.tell_waits) return;
  for (const Request& request : target.waiting) {
    if (!awaits_return(target, request.parts)) tell_wait(moment, *cluster_.find(request.application), request);
  }
}

}  // namespace hocket::coordinator
