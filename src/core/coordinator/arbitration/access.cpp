#include "coordinator/arbitration/access.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "base/saturating.hpp"
#include "coordinator/arbitration/parts.hpp"
#include "coordinator/arbitration/places.hpp"
#include "event/applicant.hpp"
#include "event/part_names.hpp"
#include "event/reason_fields.hpp"
#include "model/occupancy.hpp"
#include "policy/expected_wait.hpp"

namespace hocket::coordinator {
namespace {

using model::Application;
using model::Holder;
using model::Member;
using model::Request;
using model::RequestState;
using model::Target;

// Least delay before a policy is asked again. A policy that asks for half of the remaining time, and then for half of
// that, would never come to an end.
constexpr Duration soonest_again = std::chrono::milliseconds{1};

// If another access follows less often than this, an access counts as the last one of its phase and no idle hold
// begins. The other two limits bound the learnt idle hold.
constexpr double least_follows = 0.1;
constexpr double shortest_hold_s = 0.001;
constexpr double longest_hold_s = 0.5;

// Bounds of what an application's wrong information adds to the trace.
constexpr std::size_t longest_error = 256;  // bytes
constexpr std::size_t most_errors = 16;

std::int64_t bytes_of(const event::IoPhase& phase) { return saturating_sum(phase.bytes_read, phase.bytes_written); }

// Returns the facts of a choice: the target, and the value of the metric under each action that was compared.
event::AccessChoice facts_of(const Target& target, const model::PartSet& parts, const policy::Metric& metric,
                             const std::vector<policy::Cost>& costs) {
  event::AccessChoice choice{target.name};
  choice.parts = event::text_of_parts(target.part_numbers.names_of(parts));
  if (!costs.empty()) choice.metric = metric.text();
  for (const policy::Cost& cost : costs) {
    fields(choice, [&cost]([[maybe_unused]] std::string_view key, auto& field) {
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, double>) {
        if (key == cost.action) field = cost.value;
      }
    });
  }
  return choice;
}

// Returns the QUEUED_IO of a request at that position of the queue.
event::QueuedIo queued(const Request& request, std::int64_t position) {
  event::QueuedIo answer{request.id, position, {}};
  const Target& target = *request.target;
  // A request for parts of the target is behind those only that it meets.
  if (!request.parts.is_whole()) {
    const auto own = std::find_if(target.waiting.begin(), target.waiting.end(),
                                  [&](const Request& one) { return &one == &request; });
    const auto meets = [&](const Request& one) { return one.parts.meets(request.parts); };
    position = 1 + std::count_if(target.waiting.begin(), own, meets);
    answer.position = position;
  }
  const auto has = [&](const Holder& one) { return one.parts.meets(request.parts); };
  const auto holder = std::find_if(target.holders.begin(), target.holders.end(), has);
  if (holder != target.holders.end()) answer.behind = holder->application->name;
  return answer;
}

}  // namespace

// ---- what members do ---------------------------------------------------------------------------------------------

void AccessController::start(const Moment& moment, Member& member, const event::StartIo& start) {
  if (policies_.overrules(start.target, start.file_system))
    return this->start(moment, member, overruled(moment, *member.application, start));
  const Time now = moment.now;
  Application& application = *member.application;
  free_kept(application, [now](const Holder& holder) { return Ledger::of(holder).kept_until <= now; });

  Target& target = cluster_.target(start.target);
  free_kept_long_enough(target, now);
  const model::PartSet parts = parts_of(moment, application, target, start);
  note_use(application, target, now);
  // If the time slice is over, the application's idle hold ends too, and its request waits like any other.
  bool yields = is_turn_over(target, parts_with(application, target, parts), now);
  if (yields) free_kept(application, [&](const Holder& holder) { return holder.target == &target; });
  Request asked{start.request, member.id, application.id, &application, &target, RequestState::queued, start.bytes};
  asked.parts = parts;
  asked.write_back = start.operation == event::write_back;
  const Ledger::RequestPlace request = ledger_.add(member, asked, now);
  member.last_request = start.request;
  if (asked.write_back)
    request->kind = application.accesses.kind_of(start.operation, target.record, start.bytes);
  else
    begin_access(*request, application, start, now);

  ledger_.renew(member, target, now);
  const auto holder = find_holder(application, target);
  yields |= holder && (*holder)->pausing;
  const bool continues = holder && extends(**holder, *request);
  if (!yields && (continues || is_small(application, *request)))
    grant(moment, member, request);
  else if (holder && (*holder)->grants == 0)
    free_holder(*holder);  // its next operation uses other parts, so that the idle hold has no purpose
  touch(target);
  if (request->state == RequestState::queued) recall_for(moment, *request);
  settle(moment);
  delegate_if_alone(moment, member, request);
  if (request->state != RequestState::queued) return;
  bound_wait(member, request, now);
  if (Ledger::of(*request).too_slow != Time{} && Ledger::of(*request).too_slow <= now) {
    apply(moment, member, request, RequestInput::grant);
    return settle(moment);
  }
  const auto position = static_cast<std::int64_t>(target.waiting.size());
  moment.commands.push_back({member.id, queued(*request, position)});
  if (settings_.tell_waits && !awaits_return(target, request->parts)) tell_wait(moment, application, *request);
}

// Notes that the application itself begins an access.
void AccessController::begin_access(Request& request, Application& application, const event::StartIo& start, Time now) {
  Target& target = *request.target;
  const bool only_one = application.waiting == 1 && application.granted == 0;
  request.kind = application.accesses.asked(start.operation, target.record, start.bytes, only_one, now);
  application.target = start.target;
  application.parts =
      request.parts.is_whole() ? std::string{} : event::text_of_parts(target.part_numbers.names_of(request.parts));
  if (application.demand.over) end_demand(application);
  model::demand(application, start, now);
  request.before = application.demand.moved;
  watch_slowdown(application, request, now);
}

// The phase continues while a request of the application is not finished: another member may have begun the next one.
void AccessController::inform(const Moment& moment, const Member& member, const event::InformIo& inform) {
  Application& application = *member.application;
  if (!inform.error.empty()) return tell_wrong(moment, application, inform.error);
  if (application.demand.since == Time{}) return;
  if (!inform.phase_over) {
    model::announce(application, inform);
    for (const auto holder : application.held) touch(*holder->target);
  } else if (application.waiting == 0 && application.granted == 0) {
    free_kept(application, [](const Holder&) { return true; });
    application.demand.over = true;
    // The member that reports for all has reported everything, and no IO_PHASE follows.
    const bool reported = application.demand.reported_io > Duration{} || application.demand.reported_bytes > 0;
    if (member.processes > 0 && reported) learn_phase(moment, application, member, {.target = application.target});
  }
  settle(moment);
}

// True if the application's I/O phase goes on, so that another access is likely.
bool AccessController::is_between_accesses(const Application& application) {
  return application.demand.since != Time{} && !application.demand.over;
}

void AccessController::finish(const Moment& moment, Member& member, const event::FinishIo& finish) {
  const auto request = find(member, finish.request);
  if (!request) return;
  Target& target = *(*request)->target;
  Application& application = *member.application;
  if ((*request)->write_back) {
    const IdleHold after = is_between_accesses(application) ? IdleHold::keep : IdleHold::free;
    apply(moment, member, *request, RequestInput::finish, after);
    ledger_.renew(member, target, moment.now);
    return settle(moment);
  }
  const Moment then = when(moment, application, finish.ago, target.served);
  if ((*request)->state == RequestState::granted) {
    count_progress(target, then.now);
    // A member that states no number of processes reports its own bytes only.
    std::int64_t bytes = std::max<std::int64_t>(0, finish.bytes);
    if (member.processes > 0) bytes = application.of_all(bytes);
    model::moved(application, target, bytes);
    model::count_access(**find_holder(application, target), bytes, finish.idle);
  }
  apply(then, member, *request, RequestInput::finish, finish.phase_over ? IdleHold::free : IdleHold::keep);
  ledger_.renew(member, target, moment.now);
  application.demand.over = finish.phase_over && application.waiting == 0 && application.granted == 0;
  free_kept_long_enough(target, moment.now);  // an idle hold that began `ago` may be over
  settle(moment);
}

void AccessController::renew(const Moment& moment, Member& member, const event::RenewIo& renew) {
  const auto found = find(member, renew.request);
  if (!found) return;
  if ((*found)->state == RequestState::granted && renew.bytes > 0) {
    count_progress(*(*found)->target, moment.now);
    model::told_progress(*member.application, **found, renew.bytes);
  }
  apply(moment, member, *found, RequestInput::renew);
}

void AccessController::paused(const Moment& moment, Member& member, const event::PausedIo& paused) {
  const auto found = find(member, paused.request);
  if (!found || (*found)->state != RequestState::granted) return;
  Target& target = *(*found)->target;
  ledger_.renew(member, target, moment.now);
  Ledger::answer(*found);
  const auto holder = *find_holder(*member.application, target);
  if (!holder->pausing) {
    // The applications that requested the pause have left, so the request is granted again.
    moment.commands.push_back({member.id, event::GrantIo{paused.request, {}, target.name, Ledger::of(*holder).share}});
    return;
  }
  count_progress(target, moment.now);
  model::told_progress(*member.application, **found, paused.bytes);
  apply(moment, member, *found, RequestInput::pause);
  settle(moment);
}

void AccessController::expect_wait(const Moment& moment, const Application* asker, const event::AskWait& asked) {
  if (policies_.overrules(asked.target, asked.file_system))
    return expect_wait(moment, asker, {asked.number, asked.file_system, asked.bytes});
  policy::WaitEstimate estimate;
  if (cluster_.find_target(asked.target) != nullptr) {
    Target& target = cluster_.target(asked.target);
    if (Ledger::of(target).delegated == 0) count_progress(target, moment.now);
    const policy::Policy& policy = policies_.of(asker == nullptr ? AppId{} : asker->id, target.name);
    const auto parts = parts_named(target, asked.parts);
    const policy::View view{cluster_, target, moment.now, access_settings_, parts ? parts.value() : model::PartSet{}};
    estimate = policy::expected_wait(view, policy, asker, asked.bytes);
  }
  const Duration uncertainty = estimate.uncertainty_s ? from_s(*estimate.uncertainty_s) : Duration{-1};
  moment.commands.push_back(
      {moment.event.origin.member,
       event::ExpectedWait{asked.number, asked.target, from_s(estimate.wait_s), uncertainty, estimate.ahead}});
}

void AccessController::end_phase(const Moment& moment, const Member& member, const event::IoPhase& phase) {
  Application& application = *member.application;
  free_kept(application, [](const Holder&) { return true; });
  if (application.waiting == 0 && application.granted == 0)
    learn_phase(when(moment, application, phase.ago), application, member, phase);
  else if (member.processes > 0 && phase.end >= application.demand.since)
    learn_part(moment, application, phase);
  settle(moment);
}

// Keeps the report of a phase that continues, as its request is open. One of another member may count the same I/O.
void AccessController::learn_part(const Moment& moment, Application& application, const event::IoPhase& phase) {
  const model::Announcements before = application.announcements;
  const std::int64_t announced = application.demand.announced;
  model::learn_part(application, phase.io, application.of_all(bytes_of(phase)), phase.announced_left);
  tell_announced(moment, application, before, {announced, application.demand.reported_bytes});
}

// Ends the phase with its last report. What was reported of it before is added.
void AccessController::learn_phase(const Moment& moment, Application& application, const Member& member,
                                   const event::IoPhase& phase) {
  const Target* target = cluster_.find_target(phase.target);
  const model::IoDemand& demand = application.demand;
  const Duration all = saturating_sum(demand.reported_io, phase.io);
  const Duration io = std::min(all, moment.now - demand.since);  // at most the phase so far
  const model::Announcements before = application.announcements;
  const bool speaks_for_all = member.processes > 0;
  const std::int64_t accessed =
      speaks_for_all ? saturating_sum(demand.reported_bytes, application.of_all(bytes_of(phase))) : 0;
  model::learn(application, target != nullptr ? target->record : cluster_.record(phase.target), io, accessed,
               phase.announced_left);
  tell_announced(moment, application, before, {demand.announced, saturating_sum(accessed, phase.announced_left)});
  end_demand(application);
}

// Publishes what the application has called or announced wrongly, each text once.
void AccessController::tell_wrong(const Moment& moment, const Application& application, const std::string& error) {
  std::set<std::string>& told = wrong_[application.id];
  std::string shown = error.substr(0, longest_error);
  if (told.size() >= most_errors || !told.insert(shown).second) return;
  publish(moment, application, "wrong", event::InformationIgnored{std::move(shown)});
}

// Publishes each change of what is believed of the application's announcements, so that one that is always wrong is
// told twice, and not at each phase.
void AccessController::tell_announced(const Moment& moment, const Application& application,
                                      const model::Announcements& before, const event::AnnouncedIo& compared) {
  const int spare = application.announcements.spare();
  if (spare == before.spare()) return;
  const std::string_view action = spare == 0 ? "ignore" : spare < before.spare() ? "doubt" : "believe";
  event::AnnouncedIo reason = compared;
  reason.phases = action == "doubt" ? spare : 0;
  publish(moment, application, action, reason);
}

event::Decision AccessController::decision_on(const Application& application, const std::string& target,
                                              std::string_view action) {
  event::Decision record;
  record.number = ++decisions_;
  record.policy = policies_.of(application.id, target).name;
  record.decided_for = application.name;
  record.action = action;
  record.from = record.to = application.computing_processes();
  return record;
}

void AccessController::publish(const Moment& moment, const Application& application, std::string_view action,
                               event::Reason reason) {
  event::Decision record = decision_on(application, application.target, action);
  record.reason = std::move(reason);
  moment.commands.push_back({{}, std::move(record)});
}

void AccessController::end_demand(Application& application) {
  application.accesses.phase_over();
  application.demand = {};
}

void AccessController::leave(const Moment& moment, Member& member) {
  while (!member.requests.empty()) {
    const Ledger::RequestPlace last = member.requests.back();
    if (last->delegation)
      end_delegation(moment, member, last, DelegationInput::leave);
    else
      apply(moment, member, last, RequestInput::leave);
  }
  Application& application = *member.application;
  if (application.members.size() == 1) {
    free_kept(application, [](const Holder&) { return true; });
    end_demand(application);
    tell_slowdown(moment, application);
    policies_.unset_application(application.id);
    ignored_.erase(application.id);
    wrong_.erase(application.id);
    overruled_.erase(application.id);
  }
  settle(moment);
}

void AccessController::set_policy(const Moment& moment, const policy::Policy& policy, const policy::Metric& metric) {
  policies_.set(policy);
  access_settings_.metric = metric;
  access_settings_.most_slowdown = most_slowdown_of(settings_, policy);
  ask_everywhere(moment);
}

void AccessController::ask_everywhere(const Moment& moment) {
  recall_all(moment);
  ledger_.each_due(Time::max(), [&](Target& target) { touch(target); });
  for (const auto& [id, application] : cluster_.applications())
    for (const auto holder : application.held) touch(*holder->target);
  settle(moment);
}

// ---- what time does ----------------------------------------------------------------------------------------------

std::optional<Time> AccessController::deadline() const { return ledger_.deadline(); }

void AccessController::tick(const Moment& moment) {
  expire_leases(moment);
  ledger_.each_due(moment.now, [&](Target& target) {
    free_kept_long_enough(target, moment.now);
    touch(target);
  });
  settle(moment);
  grant_too_slow(moment);
}

void AccessController::expire_leases(const Moment& moment) {
  while (const auto request = ledger_.expired(moment.now)) {
    Member& member = *cluster_.find((*request)->member);
    moment.commands.push_back(
        {member.id, event::LeaseExpired{(*request)->id, member.application->name, (*request)->target->name}});
    if ((*request)->delegation)
      end_delegation(moment, member, *request, DelegationInput::expire);
    else
      apply(moment, member, *request, RequestInput::expire);
  }
}

void AccessController::free_kept_long_enough(Target& target, Time now) {
  while (!Ledger::of(target).kept.empty() && Ledger::of(target).kept.begin()->first.first <= now) {
    free_holder(Ledger::of(target).kept.begin()->second);
  }
}

// ---- what happens to a request -----------------------------------------------------------------------------------

void AccessController::apply(const Moment& moment, Member& member, Ledger::RequestPlace request, RequestInput input,
                             IdleHold after) {
  switch (action_of(request->state, input)) {
    case RequestAction::ignore: return;
    case RequestAction::grant:
      grant(moment, member, request);
      grant_queued_of(moment, *member.application, *request->target);
      if (const auto holder = find_holder(*member.application, *request->target); (*holder)->pausing)
        tell_to_pause(moment, **holder);
      return;
    case RequestAction::withdraw: return withdraw(member, request, moment.now);
    case RequestAction::release: return give_back(member, request, RequestAction::release, after, moment.now);
    case RequestAction::revoke: return give_back(member, request, RequestAction::revoke, IdleHold::free, moment.now);
    case RequestAction::renew: return ledger_.renew(member, *request->target, moment.now);
    case RequestAction::requeue: return requeue(member, request, moment.now);
  }
}

void AccessController::grant(const Moment& moment, const Member& member, Ledger::RequestPlace request,
                             GrantAnswer answer) {
  Target& target = *request->target;
  count_progress(target, moment.now);
  const auto held = find_holder(*member.application, target);
  const model::PartSet before = held ? (*held)->parts : model::PartSet{};
  const auto holder = ledger_.grant(member, request, moment.now);
  if (request->is_access() && holder->accesses() == 1) {
    model::begin_progress(*holder);
    model::begin_occupancy(*holder, *request);
  } else if (holder->accesses() > 0 && before != holder->parts) {
    model::change_parts(*holder);
  }
  if (request->is_access()) {
    member.application->demand.granted = true;
    model::join_occupancy(*holder, *request);
  }
  if (answer == GrantAnswer::none) return;
  moment.commands.push_back(
      {member.id, event::GrantIo{request->id, moment.now - request->since, target.name, Ledger::of(*holder).share}});
}

// Applications exclude each other, not themselves. With one request, all requests of the application on that target are
// granted, unless another one holds further parts that they need.
void AccessController::grant_queued_of(const Moment& moment, const Application& application, const Target& target) {
  const auto holder = find_holder(application, target);
  if (!holder) return;
  each_request(application, target, RequestState::queued, [&](const Member& member, Ledger::RequestPlace request) {
    if (extends(**holder, *request)) grant(moment, member, request);
  });
}

void AccessController::withdraw(Member& member, Ledger::RequestPlace request, Time now) {
  Target& target = *request->target;
  ledger_.withdraw(member, request, now);
  note_end_of_use(*member.application, target, now);
  const bool watched = target.uncoordinated.find(member.application->id) != nullptr;
  if (watched && !wants(*member.application, target)) target.uncoordinated.forget(member.application->id);
  touch(target);
}

void AccessController::requeue(const Member& member, Ledger::RequestPlace request, Time now) {
  Application& application = *member.application;
  const model::PartSet before = (*find_holder(application, *request->target))->parts;
  const auto holder = ledger_.suspend(member, request, now);
  application.io.stops |= !request->write_back;
  bound_wait(member, request, now);
  touch(*request->target);
  if (!request->write_back) model::stop_access(*holder, *request);
  if (holder->accesses() > 0) {
    if (before != holder->parts) model::change_parts(*holder);
  } else if (!request->write_back) {
    model::end_progress(*holder);
    model::end_occupancy(*holder, now, true, cluster_.few_run());
    model::learn_stop(application, now - Ledger::of(*holder).told);
  }
  if (holder->grants == 0) free_holder(holder);
}

void AccessController::give_back(Member& member, Ledger::RequestPlace request, RequestAction how, IdleHold after,
                                 Time now) {
  Application& application = *member.application;
  Target& target = *request->target;
  count_progress(target, now);
  const model::PartSet before = (*find_holder(application, target))->parts;
  const bool is_access = request->is_access();
  const bool is_delegation = request->delegation;
  const auto holder = ledger_.end(member, request, now);
  note_end_of_use(application, target, now);
  touch(target);
  if (is_access) holder->occupancy.whole &= how == RequestAction::release;
  if (holder->accesses() > 0) {
    if (before != holder->parts) model::change_parts(*holder);
  } else if (is_access) {
    model::end_progress(*holder);
    model::end_occupancy(*holder, now, false, cluster_.few_run());
    if (holder->pausing) model::learn_stop(application, now - Ledger::of(*holder).told);
  }
  // The idle hold that began with the last access goes on after a delegation.
  Time until = Ledger::of(*holder).kept_until;
  if (after == IdleHold::free || holder->pausing)
    until = now;
  else if (!is_delegation)
    until = now + hold_for(*holder);
  if (holder->grants > 0)  // perhaps its I/O servers store what it wrote, or it has a delegation
    return is_access ? Ledger::stay_until(*holder, until) : void();
  // A request for further parts would wait for its application's own idle hold.
  const bool asks = Ledger::of(target).parted > 0 && wants(application, target);
  if (until <= now || asks || is_turn_over(target, holder->parts, now)) return free_holder(holder);
  Ledger::keep(holder, until);
}

// The learnt idle hold lasts for the longest usual gap between two accesses. A target that other applications hold as
// well is not held idle.
Duration AccessController::hold_for(const Holder& holder) const {
  const policy::Policy& policy = policies_.of(holder.application->id, holder.target->name);
  if (!policy.learnt_hold && !settings_.learnt_hold) return settings_.linger;
  const model::AccessHistory& accesses = holder.application->accesses;
  const auto is_beside = [&](const Holder& one) { return &one != &holder && one.parts.meets(holder.parts); };
  const model::Holders& all = holder.target->holders;
  if (std::any_of(all.begin(), all.end(), is_beside) || accesses.follows() < least_follows) return Duration{};
  const auto gap = accesses.gap();
  return gap ? from_s(std::clamp(gap->longest_s, shortest_hold_s, longest_hold_s)) : settings_.linger;
}

// ---- holders -----------------------------------------------------------------------------------------------------

// Precondition: the holder has no grants.
void AccessController::free_holder(Ledger::HolderPlace holder) {
  touch(*holder->target);
  ledger_.free(holder);
}

template <class Condition>
void AccessController::free_kept(Application& application, Condition condition) {
  for (std::size_t i = application.held.size(); i-- > 0;) {
    const auto holder = application.held[i];
    if (holder->accesses() > 0 || !condition(*holder)) continue;
    if (holder->grants == 0)
      free_holder(holder);
    else
      Ledger::stay_until(*holder, {});  // it is free when its delegation or write-back has ended
  }
}

// ---- settling ----------------------------------------------------------------------------------------------------

void AccessController::settle(const Moment& moment) {
  std::sort(touched_.begin(), touched_.end(), [](const Target* a, const Target* b) { return a->number < b->number; });
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  // The policy's grants touch the same targets again; these are handled here already.
  const std::vector<Target*> touched = std::exchange(touched_, {});
  for (Target* target : touched) {
    go_on_if_alone(moment, *target);
    grant_further(moment, *target);
    grant_held_up(moment, *target);
    ask_policy_if_any(moment, *target);
    // Deadlocks are broken after the policy was asked: if it grants the target to many at once, no request waits any
    // more.
    if (grant_deadlocked(moment, *target)) ask_policy_if_any(moment, *target);
    grant_beside_others(moment, *target);
    if (std::holds_alternative<event::Tick>(moment.event.body)) send_reminders(moment, *target);
    ledger_.set_timer(*target, wake_time(*target));
    cluster_.drop_if_idle(*target);
  }
  touched_.clear();
}

void AccessController::ask_policy_if_any(const Moment& moment, Target& target) {
  const auto shares = [](const policy::Policy* policy) { return policy->shares; };
  const bool shared =
      policies_.are_all_alike() ? policies_.general().shares : std::ranges::any_of(policies_.at(target), shares);
  if (!target.waiting.empty() || (shared && !target.holders.empty()))
    ask_policies(moment, target);
  else
    share_out(moment, target, {});  // the previous policy may have sent shares
}

void AccessController::ask_policies(const Moment& moment, Target& target) {
  Ledger::ask_again(target, {});
  // What was begun under a delegation is known when it was returned: progress is not counted beyond that before.
  if (Ledger::of(target).recalled == 0) count_progress(target, moment.now);
  const std::vector<ContestDecision> decisions = ask_contests(moment, target);
  std::vector<policy::BandwidthShare> shares;
  Time again{};
  for (const auto& [parts, decision, prefers_others, freed] : decisions) {
    shares.insert(shares.end(), decision.shares.begin(), decision.shares.end());
    if (decision.again > moment.now) again = again == Time{} ? decision.again : std::min(again, decision.again);
    if (prefers_others) grant_preferred(moment, target, parts);
  }
  share_out(moment, target, shares);
  if (again > moment.now && !target.waiting.empty()) {
    Ledger::ask_again(target, std::max(again, moment.now + soonest_again));
  }
  for (const ContestDecision& made : decisions) tell(moment, target, made.parts, made.decision);
}

AccessController::ContestDecision AccessController::ask_policy(const Moment& moment, Target& target,
                                                               const model::PartSet& parts,
                                                               const policy::Policy& policy) {
  bool prefers_others = false;
  bool freed = false;
  policy::AccessDecision decision = decision_of(moment, target, parts, policy, prefers_others);
  // A preempted holder in its idle hold frees the target at once, so the policy must decide again.
  while (interrupt(moment, target, decision)) {
    freed = true;
    tell(moment, target, parts, decision);
    decision = decision_of(moment, target, parts, policy, prefers_others);
  }
  for (const policy::Grant& chosen : decision.grants) {
    Member* member = cluster_.find(chosen.member);
    const auto request = member ? find(*member, chosen.request) : std::nullopt;
    if (!request || (*request)->target != &target) continue;
    const auto holder = find_holder(*member->application, target);
    if (holder && (*holder)->pausing) continue;
    apply(moment, *member, *request, RequestInput::grant);
  }
  return {parts, std::move(decision), prefers_others, freed};
}

// Sends GRANT_IO with the new share to each holder whose share has changed.
void AccessController::share_out(const Moment& moment, Target& target,
                                 const std::vector<policy::BandwidthShare>& shares) {
  if (shares.empty() && !Ledger::of(target).shared) return;
  Ledger::begin_shares(target);
  for (Holder& holder : target.holders) {
    const auto same = [&](const policy::BandwidthShare& one) { return one.application == holder.application->id; };
    const auto found = std::find_if(shares.begin(), shares.end(), same);
    const double share = found == shares.end() ? 1 : std::clamp(found->part, 0.0, 1.0);
    if (!Ledger::set_share(holder, share)) continue;
    each_request(*holder.application, target, RequestState::granted,
                 [&](const Member& member, Ledger::RequestPlace request) {
                   // A member that was asked to pause would take a new GRANT_IO for the end of the pause.
                   if (Ledger::of(*request).told || request->delegation) return;
                   for (Command& command : moment.commands) {  // the grant itself is not sent yet: its share is changed
                     auto* grant = std::get_if<event::GrantIo>(&command.body);
                     if (grant == nullptr || command.to != member.id || grant->request != request->id) continue;
                     grant->share = share;
                     return;
                   }
                   moment.commands.push_back({member.id, event::GrantIo{request->id, {}, target.name, share}});
                 });
  }
}

// Publishes what was compared and what was chosen, for operators. A choice is published once, until another one
// replaces it.
void AccessController::tell(const Moment& moment, const Target& target, const model::PartSet& parts,
                            const policy::AccessDecision& decision) {
  std::vector<policy::Choice> choices = decision.choices;
  if (choices.empty() && settings_.tell_waits) {  // a policy in Python gives its actions, but no reasons
    for (const AppId id : decision.interruptions) {
      const auto of_another = [&](const Request& request) {
        return request.application != id && request.parts.meets(parts);
      };
      const auto last = std::find_if(target.waiting.rbegin(), target.waiting.rend(), of_another);
      if (last != target.waiting.rend()) choices.push_back({last->application, id, "interrupt"});
    }
  }
  for (const policy::Choice& choice : choices) {
    Application* application = cluster_.find(choice.application);
    const Application* other = cluster_.find(choice.because_of);
    if (application == nullptr || other == nullptr) continue;
    const model::PublishedChoice published{choice.action, other->id};
    if (std::exchange(application->demand.published, published) == published) continue;
    record(moment, *application, other, choice.action,
           facts_of(target, parts, access_settings_.metric, decision.costs));
  }
}

// The policy lets the application wait and may not have explained that: fcfs and policies in Python never do.
void AccessController::tell_wait(const Moment& moment, Application& application, const Request& request) {
  const Target& target = *request.target;
  const auto is_other = [&](const Holder& one) {
    return one.application != &application && one.parts.meets(request.parts);
  };
  const auto holder = std::find_if(target.holders.begin(), target.holders.end(), is_other);
  const Application* other = holder == target.holders.end() ? nullptr : holder->application;
  const AppId because_of = other == nullptr ? AppId{} : other->id;
  model::PublishedChoice& published = application.demand.published;
  if (!published.action.empty() && published.because_of == because_of) return;
  published = {"wait", because_of};
  record(moment, application, other, published.action, facts_of(target, request.parts, access_settings_.metric, {}));
}

void AccessController::record(const Moment& moment, const Application& application, const Application* other,
                              std::string_view action, event::AccessChoice choice) {
  static const std::string nobody;
  // Data that I/O servers hold may be all that waits.
  const bool only_holds = action == "wait" && application.waiting == 0;
  event::Decision record = decision_on(application, choice.target, only_holds ? "hold" : action);
  record.because_of = other == nullptr ? nobody : other->name;
  record.reason = std::move(choice);
  moment.commands.push_back({{}, std::move(record)});
}

void AccessController::send_reminders(const Moment& moment, Target& target) {
  if (!ledger_.remind(target, moment.now)) return;
  std::int64_t position = 0;
  for (const Request& request : target.waiting) {
    moment.commands.push_back({request.member, queued(request, ++position)});
  }
}

Time AccessController::wake_time(const Target& target) const {
  if (target.waiting.empty()) return {};
  Time wake = Ledger::of(target).remind;
  if (Ledger::of(target).again != Time{}) wake = std::min(wake, Ledger::of(target).again);
  if (!Ledger::of(target).kept.empty()) wake = std::min(wake, Ledger::of(target).kept.begin()->first.first);
  wake = std::min(wake, held_up(target).value_or(wake));
  wake = std::min(wake, beside_others(target).value_or(wake));
  return std::min(wake, deadlocked(target).value_or(wake));
}

}  // namespace hocket::coordinator
