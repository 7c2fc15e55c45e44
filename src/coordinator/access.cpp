#include "coordinator/access.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "base/saturating.hpp"
#include "coordinator/places.hpp"
#include "coordinator/words.hpp"
#include "model/occupancy.hpp"

namespace hocket::coordinator {
namespace {

using model::Application;
using model::Holder;
using model::Member;
using model::Request;
using model::RequestState;
using model::Target;
using Told = model::IoDemand::Told;

constexpr Time never{};  // Target::wake of a target where nothing is due
// Least delay before a policy is asked again. A policy that asks for half of the remaining time, and then for half of
// that, would never come to an end.
constexpr Duration soonest_again = std::chrono::milliseconds{1};

// If another access follows less often than this, an access counts as the last one of its phase and no idle hold
// begins. The other two limits bound the learnt idle hold.
constexpr double least_follows = 0.1;
constexpr double shortest_hold_s = 0.001;
constexpr double longest_hold_s = 0.5;

// Returns the QUEUED_IO of a request at that position of the queue.
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
  // If the time slice is over, the application's idle hold ends too, and its request waits like any other.
  bool yields = is_turn_over(target, now);
  if (yields) free_kept(application, [&](const Holder& holder) { return holder.target == &target; });
  if (target.waiting.empty()) target.remind = now + settings_.keep_alive;
  Request asked{start.request, member.id, application.id, &application, &target, RequestState::queued, start.bytes};
  const bool only_one = application.waiting == 0 && application.granted == 0;
  asked.kind = application.accesses.asked(start.operation, target.record, start.bytes, only_one, now);
  asked.since = now;
  asked.order = ++target.arrivals;
  const Place request = requests_.append(target.waiting, asked);
  member.requests.push_back(request);
  member.last_request = start.request;
  application.target = start.target;
  application.count_requests(+1, 0, now);
  if (application.demand.over) end_demand(application);
  model::demand(application, start, now);
  request->before = application.demand.moved;
  watch_slowdown(application, *request, now);

  renew_leases(member, target, now);
  const auto holder = find_holder(application, target);
  yields |= holder && (*holder)->pausing;
  if (!yields && (holder || is_small(application, *request))) grant(moment, member, request);
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
  if (settings_.tell_waits) tell_wait(moment, application, target);
}

void Access::finish(const Moment& moment, Member& member, const event::FinishIo& finish) {
  const auto request = find(member, finish.request);
  if (!request) return;
  Target& target = *(*request)->target;
  if ((*request)->state == RequestState::granted) {
    count_progress(target, moment.now);
    // A member that states no number of processes reports its own bytes only.
    std::int64_t bytes = std::max<std::int64_t>(0, finish.bytes);
    if (member.processes > 0) bytes = member.application->of_all(bytes);
    model::moved(*member.application, target, bytes);
    model::count_access(**find_holder(*member.application, target), bytes, finish.idle);
  }
  apply(moment, member, *request, RequestInput::finish, finish.phase_over ? After::free : After::keep);
  renew_leases(member, target, moment.now);
  Application& application = *member.application;
  application.demand.over = finish.phase_over && application.waiting == 0 && application.granted == 0;
  settle(moment);
}

void Access::renew(const Moment& moment, Member& member, const event::RenewIo& renew) {
  const auto found = find(member, renew.request);
  if (!found) return;
  if ((*found)->state == RequestState::granted && renew.bytes > 0) {
    count_progress(*(*found)->target, moment.now);
    model::told_progress(*member.application, **found, renew.bytes);
  }
  apply(moment, member, *found, RequestInput::renew);
}

void Access::paused(const Moment& moment, Member& member, const event::PausedIo& paused) {
  const auto found = find(member, paused.request);
  if (!found || (*found)->state != RequestState::granted) return;
  Target& target = *(*found)->target;
  renew_leases(member, target, moment.now);
  (*found)->told = false;
  const auto holder = *find_holder(*member.application, target);
  if (!holder->pausing) {
    // The applications that requested the pause have left, so the request is granted again.
    moment.commands.push_back({member.id, event::GrantIo{paused.request, {}, target.name, holder->share}});
    return;
  }
  count_progress(target, moment.now);
  model::told_progress(*member.application, **found, paused.bytes);
  apply(moment, member, *found, RequestInput::pause);
  settle(moment);
}

void Access::end_phase(const Moment& moment, const Member& member, const event::IoPhase& phase) {
  Application& application = *member.application;
  free_kept(application, [](const Holder&) { return true; });
  if (application.waiting == 0 && application.granted == 0) {
    const Target* target = cluster_.find_target(phase.target);
    const std::int64_t bytes = saturating_sum(phase.bytes_read, phase.bytes_written);
    const bool speaks_for_all = member.processes > 0;
    const Duration io = std::min(phase.io, moment.now - application.demand.since);  // at most the phase so far
    model::learn(application, target != nullptr ? target->record : cluster_.record(phase.target), io,
                 speaks_for_all ? application.of_all(bytes) : 0);
    end_demand(application);
  }
  settle(moment);
}

void Access::end_demand(Application& application) {
  application.accesses.phase_over();
  application.demand = {};
}

void Access::leave(const Moment& moment, Member& member) {
  while (!member.requests.empty()) apply(moment, member, member.requests.back(), RequestInput::leave);
  Application& application = *member.application;
  if (application.members.size() == 1) {
    free_kept(application, [](const Holder&) { return true; });
    end_demand(application);
    tell_slowdown(moment, application);
  }
  settle(moment);
}

void Access::set_policy(const Moment& moment, const policy::Policy& policy, const policy::Metric& metric) {
  policy_ = &policy;
  access_settings_.metric = metric;
  access_settings_.most_slowdown = most_slowdown_of(settings_, policy);
  for (const auto& [wake, target] : timers_) touch(*target);
  for (const auto& [id, application] : cluster_.applications())
    for (const auto holder : application.held) touch(*holder->target);
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
      if (const auto holder = find_holder(*member.application, *request->target); (*holder)->pausing)
        tell_to_pause(moment, **holder);
      return;
    case RequestAction::withdraw: return withdraw(member, request, moment.now);
    case RequestAction::release: return give_back(member, request, RequestAction::release, after, moment.now);
    case RequestAction::revoke: return give_back(member, request, RequestAction::revoke, After::free, moment.now);
    case RequestAction::renew: return renew_leases(member, *request->target, moment.now);
    case RequestAction::requeue: return requeue(member, request, moment.now);
  }
}

void Access::grant(const Moment& moment, const Member& member, Place request) {
  Target& target = *request->target;
  count_progress(target, moment.now);
  forget_bound(request);
  if (request->since < moment.now) target.last_wait = moment.now;
  granted_.splice(granted_.end(), target.waiting, request);
  request->state = RequestState::granted;
  if (std::exchange(request->paused, false)) --target.paused;
  request->told = false;
  request->granted = moment.now;
  request->expires = moment.now + settings_.lease;

  Application& application = *member.application;
  application.demand.granted = true;
  auto holder = find_holder(application, target);
  if (!holder) {
    holder = holders_.append(target.holders, {&application, &target, 0, moment.now});
    application.held.push_back(*holder);
  } else if ((*holder)->grants == 0) {
    target.kept.erase({(*holder)->kept_until, application.id});
  }
  if (++(*holder)->grants == 1) {
    model::begin_progress(**holder);
    model::begin_occupancy(**holder, *request);
  }
  model::join_occupancy(**holder, *request);
  application.count_requests(-1, +1, moment.now);
  moment.commands.push_back(
      {member.id, event::GrantIo{request->id, moment.now - request->since, target.name, (*holder)->share}});
}

// Applications exclude each other, not themselves. With one request, all requests of the application on that target are
// granted.
void Access::grant_queued_of(const Moment& moment, const Application& application, const Target& target) {
  each_request(application, target, RequestState::queued,
               [&](const Member& member, Place request) { grant(moment, member, request); });
}

void Access::withdraw(Member& member, Place request, Time now) {
  Target& target = *request->target;
  forget_bound(request);
  target.last_wait = now;
  if (request->paused) --target.paused;
  member.requests.remove(request);
  requests_.remove(target.waiting, request);
  member.application->count_requests(-1, 0, now);
  const bool watched = target.uncoordinated.find(member.application->id) != nullptr;
  if (watched && !wants(*member.application, target)) target.uncoordinated.forget(member.application->id);
  touch(target);
}

// The request was suspended in the middle, so it keeps its arrival order and returns to its place in the queue.
void Access::requeue(Member& member, Place request, Time now) {
  Target& target = *request->target;
  if (target.waiting.empty()) target.remind = now + settings_.keep_alive;
  const auto later = [&](const Request& other) { return other.order > request->order; };
  const Place place = std::find_if(target.waiting.begin(), target.waiting.end(), later);
  target.waiting.splice(place, granted_, request);
  request->state = RequestState::queued;
  request->paused = true;
  ++target.paused;
  request->since = now;
  Application& application = *member.application;
  application.io.stops = true;
  application.count_requests(+1, -1, now);
  bound_wait(member, request, now);
  touch(target);
  const auto holder = *find_holder(application, target);
  model::stop_access(*holder, *request);
  if (--holder->grants > 0) return;
  model::end_progress(*holder);
  model::end_occupancy(*holder, now, true, cluster_.few_run());
  model::learn_stop(application, now - holder->told);
  free_holder(holder);
}

void Access::give_back(Member& member, Place request, RequestAction how, After after, Time now) {
  Application& application = *member.application;
  Target& target = *request->target;
  count_progress(target, now);
  member.requests.remove(request);
  requests_.remove(granted_, request);
  application.count_requests(0, -1, now);

  const auto holder = *find_holder(application, target);
  touch(target);
  holder->occupancy.whole &= how == RequestAction::release;
  if (--holder->grants > 0) return;
  model::end_progress(*holder);
  model::end_occupancy(*holder, now, false, cluster_.few_run());
  if (holder->pausing) model::learn_stop(application, now - holder->told);
  const Duration hold = after == After::free || holder->pausing ? Duration{} : hold_for(*holder);
  if (hold == Duration{} || is_turn_over(target, now)) return free_holder(holder);
  holder->kept_until = now + hold;
  target.kept.emplace(std::pair{holder->kept_until, application.id}, holder);
}

// The learnt idle hold lasts for the longest usual gap between two accesses. A target that other applications hold as
// well is not held idle.
Duration Access::hold_for(const Holder& holder) const {
  if (!policy_->learnt_hold && !settings_.learnt_hold) return settings_.linger;
  const model::AccessHistory& accesses = holder.application->accesses;
  if (holder.target->holders.size() > 1 || accesses.follows() < least_follows) return Duration{};
  const auto gap = accesses.gap();
  return gap ? from_s(std::clamp(gap->longest_s, shortest_hold_s, longest_hold_s)) : settings_.linger;
}

// A message about a target shows that the member is alive, so all its leases there begin anew.
void Access::renew_leases(const Member& member, const Target& target, Time now) {
  for (const Place request : member.requests) {
    if (request->target != &target || request->state != RequestState::granted) continue;
    request->expires = now + settings_.lease;
    granted_.splice(granted_.end(), granted_, request);
  }
}

// ---- holders -----------------------------------------------------------------------------------------------------

// Precondition: the holder has no grants.
void Access::free_holder(model::Holders::iterator holder) {
  Target& target = *holder->target;
  if (holder->pausing) --target.pausing;
  target.kept.erase({holder->kept_until, holder->application->id});
  holder->application->held.remove(holder);
  holders_.remove(target.holders, holder);
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
  // The policy's grants touch the same targets again; these are handled here already.
  const std::vector<Target*> touched = std::exchange(touched_, {});
  for (Target* target : touched) {
    go_on_if_alone(moment, *target);
    grant_held_up(moment, *target);
    ask_policy_if_any(moment, *target);
    // Deadlocks are broken after the policy was asked: if it grants the target to many at once, no request waits any
    // more.
    if (grant_deadlocked(moment, *target)) ask_policy_if_any(moment, *target);
    if (std::holds_alternative<event::Tick>(moment.event.body)) send_reminders(moment, *target);
    set_timer(*target);
    cluster_.drop_if_idle(*target);
  }
  touched_.clear();
}

void Access::ask_policy_if_any(const Moment& moment, Target& target) {
  if (!target.waiting.empty() || (policy_->shares && !target.holders.empty()))
    ask_policy(moment, target);
  else
    share_out(moment, target, {});  // the previous policy may have sent shares
}

void Access::ask_policy(const Moment& moment, Target& target) {
  target.again = {};
  count_progress(target, moment.now);
  policy::Decision decision = policy_->decide({cluster_, target, moment.now, access_settings_}, moment.event);
  // A preempted holder in its idle hold frees the target at once, so the policy must decide again.
  while (interrupt(moment, target, decision)) {
    tell(moment, target, decision);
    decision = policy_->decide({cluster_, target, moment.now, access_settings_}, moment.event);
  }
  for (const policy::Grant& chosen : decision.grants) {
    Member* member = cluster_.find(chosen.member);
    const auto request = member ? find(*member, chosen.request) : std::nullopt;
    if (!request || (*request)->target != &target) continue;
    const auto holder = find_holder(*member->application, target);
    if (holder && (*holder)->pausing) continue;
    apply(moment, *member, *request, RequestInput::grant);
  }
  share_out(moment, target, decision.shares);
  if (decision.again > moment.now && !target.waiting.empty()) {
    target.again = std::max(decision.again, moment.now + soonest_again);
  }
  tell(moment, target, decision);
}

// Sends GRANT_IO with the new share to each holder whose share has changed.
void Access::share_out(const Moment& moment, Target& target, const std::vector<policy::Share>& shares) {
  if (shares.empty() && !target.shared) return;
  target.shared = false;
  for (Holder& holder : target.holders) {
    const auto same = [&](const policy::Share& one) { return one.application == holder.application->id; };
    const auto found = std::find_if(shares.begin(), shares.end(), same);
    const double share = found == shares.end() ? 1 : std::clamp(found->part, 0.0, 1.0);
    target.shared |= share < 1;
    if (std::exchange(holder.share, share) == share) continue;
    each_request(*holder.application, target, RequestState::granted, [&](const Member& member, Place request) {
      // A member that was asked to pause would take a new GRANT_IO for the end of the pause.
      if (request->told) return;
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
void Access::tell(const Moment& moment, const Target& target, const policy::Decision& decision) {
  std::vector<policy::Choice> choices = decision.choices;
  if (choices.empty() && settings_.tell_waits) {  // a policy in Python gives its actions, but no reasons
    for (const AppId id : decision.interruptions) {
      const auto of_another = [id](const Request& request) { return request.application != id; };
      const auto last = std::find_if(target.waiting.rbegin(), target.waiting.rend(), of_another);
      if (last != target.waiting.rend()) choices.push_back({last->application, id, "interrupt"});
    }
  }
  for (const policy::Choice& choice : choices) {
    Application* application = cluster_.find(choice.application);
    const Application* other = cluster_.find(choice.because_of);
    if (application == nullptr || other == nullptr) continue;
    const Told told{choice.action, other->id};
    if (std::exchange(application->demand.told, told) == told) continue;
    record(moment, *application, other, target, choice.action, costs_text(access_settings_.metric, decision.costs));
  }
}

// The policy lets the application wait and may not have explained that: fcfs and policies in Python never do.
void Access::tell_wait(const Moment& moment, Application& application, const Target& target) {
  const auto is_other = [&](const Holder& one) { return one.application != &application; };
  const auto holder = std::find_if(target.holders.begin(), target.holders.end(), is_other);
  const Application* other = holder == target.holders.end() ? nullptr : holder->application;
  const AppId because_of = other == nullptr ? AppId{} : other->id;
  Told& told = application.demand.told;
  if (!told.action.empty() && told.because_of == because_of) return;
  told = {"wait", because_of};
  record(moment, application, other, target, told.action, {});
}

// `other` is nullptr if the application waits for no particular one.
void Access::record(const Moment& moment, const Application& application, const Application* other,
                    const Target& target, std::string_view action, const std::string& costs) {
  static const std::string nobody;
  event::Decision record;
  record.number = ++decisions_;
  record.policy = policy_->name;
  record.decided_for = application.name;
  record.because_of = other == nullptr ? nobody : other->name;
  record.action = action;
  record.from = record.to = application.computing_processes();
  record.text = access_text(application.name, record.because_of, target.name, action) + costs;
  moment.commands.push_back({{}, std::move(record)});
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
    if (target.again != Time{}) wake = std::min(wake, target.again);
    if (!target.kept.empty()) wake = std::min(wake, target.kept.begin()->first.first);
    wake = std::min(wake, held_up(target).value_or(wake));
    wake = std::min(wake, deadlocked(target).value_or(wake));
  }
  if (wake == target.wake) return;
  if (target.wake != never) timers_.erase({target.wake, target.number});
  if (wake != never) timers_.emplace(std::pair{wake, target.number}, &target);
  target.wake = wake;
}

}  // namespace hocket::coordinator
