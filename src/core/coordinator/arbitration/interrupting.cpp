// This part of AccessController preempts holders (CALCioM, section III-A): by a policy's decision, or because their
// time slice is over. It also grants what a preempted application still needs to finish its current operation, and it
// breaks deadlocks.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

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

// Time limit for a request of a holder that has to give the target up. The request normally waits. But the operation
// under way may need just the process that asks, and could not end. After this time the request is granted, for one
// operation or round.
constexpr Duration longest_held_up = std::chrono::seconds{1};
// The same limit if the operation itself began after the holder had to give the target up, and its member makes the
// request. The member may have several threads, so that the operation ends soon. Or it is a single thread, which cannot
// end the operation.
constexpr Duration longest_beside = std::chrono::seconds{5};

// Returns the time since which the longest waiting request for one of these parts waits; Time::max() if none waits.
// Suspended requests keep their place, but have waited only since their suspension, so later requests are looked at
// too.
Time waited_since(const Target& target, const PartSet& parts) {
  Time first = Time::max();
  std::int64_t paused = Ledger::of(target).paused;
  bool all_but_paused = false;
  for (auto request = target.waiting.begin(); request != target.waiting.end() && !(all_but_paused && paused == 0);
       ++request) {
    const bool meets = request->parts.meets(parts);
    if (meets) first = std::min(first, request->since);
    if (request->paused)
      --paused;
    else
      all_but_paused |= meets;
  }
  return first;
}

// A node of the wait-for graph: an application that has a target for which its predecessor waits.
struct Link {
  const Application* application;
  const Target* has;
  const Application* first;  // holder at which the search began
  Time since;                // time at which the path to this node was complete
  Duration patience;         // how long the path may exist before it counts as a deadlock
};

// Returns the time of the holder's oldest grant that has not ended.
Time busy_since(const Holder& holder) {
  Time first = Time::max();
  each_request(*holder.application, *holder.target, RequestState::granted,
               [&](const Member&, auto request) { first = std::min(first, request->granted); });
  return first;
}

// True if the member itself has a grant on the target.
bool has(const Member& member, const Target& target) {
  return std::any_of(member.requests.begin(), member.requests.end(), [&](const auto request) {
    return request->target == &target && request->state == RequestState::granted;
  });
}

// A waiting member that has the target itself may be a single thread that never ends its operation. An operation of
// another member usually ends by itself, so the limit is longer.
Duration patience_for(const Link& link, const Member& member, Duration turn) {
  return std::max(link.patience, has(member, *link.has) ? longest_beside : std::max(turn, longest_beside));
}

// True if the application holds all of the request's parts itself, so that the request waits only for the next time
// slice.
bool has_all(const Application& application, const Request& request) {
  const auto holder = find_holder(application, *request.target);
  return holder && (*holder)->grants > 0 && (*holder)->parts.covers(request.parts);
}

// Returns the holders among `firsts`, all of one target, that wait for others, the holders for which they wait, and so
// on. Each application and each target is visited once; a target whose requests use parts, once for each request.
std::vector<Link> waited_for(const std::vector<const Holder*>& firsts, Duration turn) {
  std::vector<Link> found;
  for (const Holder* holder : firsts) {
    if (holder->grants == 0 || holder->application->waiting == 0) continue;
    found.push_back({holder->application, holder->target, holder->application, busy_since(*holder), {}});
  }
  if (found.empty()) return found;
  std::unordered_set<const Application*> applications;
  std::unordered_set<const Target*> targets;
  if (Ledger::of(*firsts.front()->target).parted == 0) targets.insert(firsts.front()->target);
  for (const Link& link : found) applications.insert(link.application);
  const auto follow = [&](const Link from, const Member& member, const Request& request) {
    if (request.state != RequestState::queued || has_all(*from.application, request)) return;
    if (Ledger::of(*request.target).parted == 0 && !targets.insert(request.target).second) return;
    const PartSet reach = reach_of(*request.target, request.parts);
    const Duration patience = patience_for(from, member, turn);
    for (const Holder& next : request.target->holders) {
      if (next.grants == 0 || !next.parts.meets(reach) || !applications.insert(next.application).second) continue;
      const Time since = std::max({from.since, request.since, busy_since(next)});
      found.push_back({next.application, request.target, from.first, since, patience});
    }
  };
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const bool itself : {true, false}) {  // paths with the shorter limit first
      for (const Member* member : found[i].application->members) {
        if (member->requests.empty() || has(*member, *found[i].has) != itself) continue;
        for (const auto request : member->requests) follow(found[i], *member, *request);
      }
    }
  }
  return found;
}

// Returns the holders of the target, grouped so that a request waits for all of a group or for none: all together, but
// each alone if requests use parts of the target.
std::vector<std::vector<const Holder*>> holder_groups(const Target& target) {
  std::vector<std::vector<const Holder*>> groups;
  for (const Holder& holder : target.holders) {
    if (groups.empty() || Ledger::of(target).parted > 0) groups.emplace_back();
    groups.back().push_back(&holder);
  }
  return groups;
}

// Calls `visit(request, first, due)` for each request at the target that closes a circle of the wait-for graph. The
// circle begins with `first`, beside which the request is granted at `due`.
template <class Visit>
void each_deadlocked(const Target& target, Duration turn, Visit visit) {
  if (target.waiting.empty()) return;
  for (const auto& group : holder_groups(target)) {
    for (const Link& link : waited_for(group, turn)) {
      each_request(*link.application, target, RequestState::queued, [&](const Member& member, auto request) {
        const auto first = find_holder(*link.first, target);
        if (link.application == link.first || has_all(*link.application, *request)) return;
        if (!(*first)->parts.meets(reach_of(target, request->parts))) return;
        visit(request, *link.first, std::max(link.since, request->since) + patience_for(link, member, turn));
      });
    }
  }
}

}  // namespace

bool AccessController::is_turn_over(const Target& target, const PartSet& parts, Time now) const {
  const Time first = waited_since(target, parts);
  return first != Time::max() && now - first >= settings_.turn;
}

// Idle holders stop at once. Holders with operations under way are asked to pause. No application is preempted more
// than `most_interruptions` times in an I/O phase.
bool AccessController::interrupt(const Moment& moment, Target& target, const policy::AccessDecision& decision) {
  bool freed = false;
  for (const AppId id : decision.interruptions) {
    Application* application = cluster_.find(id);
    const auto holder = application ? find_holder(*application, target) : std::nullopt;
    if (!holder || (*holder)->pausing) continue;
    if (application->demand.interruptions >= access_settings_.most_interruptions) continue;
    if (awaits_return(target, (*holder)->parts)) continue;  // it may have begun operations that are not known yet
    ++application->demand.interruptions;
    if ((*holder)->grants == 0) {
      free_holder(*holder);
      freed = true;
      continue;
    }
    Ledger::begin_pause(**holder, moment.now);
    tell_to_pause(moment, **holder);
  }
  return freed;
}

void AccessController::tell_to_pause(const Moment& moment, const Holder& holder) {
  const Target& target = *holder.target;
  std::string because_of;
  for (const Request& request : target.waiting) {
    if (request.application != holder.application->id && request.parts.meets(holder.parts))
      because_of = request.of->name;
  }
  each_request(*holder.application, target, RequestState::granted,
               [&](const Member& member, Ledger::RequestPlace request) {
                 if (request->delegation || !Ledger::tell(request)) return;
                 moment.commands.push_back({member.id, event::PauseIo{request->id, because_of, target.name}});
               });
}

// The applications that requested the pause have left before the holder has paused.
void AccessController::go_on_if_alone(const Moment& moment, Target& target) {
  if (Ledger::of(target).pausing == 0) return;
  for (Holder& holder : target.holders) {
    const AppId id = holder.application->id;
    const auto of_another = [&](const Request& request) {
      return request.application != id && request.parts.meets(holder.parts);
    };
    if (!holder.pausing || std::any_of(target.waiting.begin(), target.waiting.end(), of_another)) continue;
    Ledger::end_pause(holder);
    grant_queued_of(moment, *holder.application, target);
  }
}

// The shorter of two lists is scanned, because many applications may hold a target while few wait, or the reverse. An
// application may be found twice.
std::vector<const Holder*> AccessController::asking_holders(const Target& target) const {
  std::vector<const Holder*> found;
  const auto add = [&](const Holder& holder) {
    if (holder.grants > 0 && holder.application->waiting > 0) found.push_back(&holder);
  };
  if (target.holders.size() <= target.waiting.size()) {
    for (const Holder& holder : target.holders) add(holder);
    return found;
  }
  for (const Request& request : target.waiting) {
    if (const auto holder = find_holder(*request.of, target)) add(**holder);
  }
  return found;
}

// The limit is the shorter one if an operation began before the application had to give the target up. It is the longer
// one if the member asks beside a later operation. Else the request waits for the next time slice.
std::optional<Duration> AccessController::held_up_for(const Holder& holder) const {
  const Time waited = waited_since(*holder.target, holder.parts);
  if (waited == Time::max()) return std::nullopt;
  Time since = Ledger::of(holder).told;
  // Without a pause, the holder has to yield since its time slice ended, or since it got the target if that is later.
  if (!holder.pausing) since = std::max(waited + settings_.turn, holder.since);
  std::optional<Duration> longest;
  each_request(*holder.application, *holder.target, RequestState::granted,
               [&](const Member& member, Ledger::RequestPlace request) {
                 if (request->delegation) return;
                 const auto beside = [&](Ledger::RequestPlace other) {
                   return other->target == request->target && other->state == RequestState::queued &&
                          other->since >= request->granted;
                 };
                 if (request->granted <= since)
                   longest = longest_held_up;
                 else if (!longest && std::any_of(member.requests.begin(), member.requests.end(), beside))
                   longest = longest_beside;
               });
  return longest;
}

std::optional<Time> AccessController::held_up(const Target& target) const {
  std::optional<Time> first;
  for (const Holder* holder : asking_holders(target)) {
    const auto longest = held_up_for(*holder);
    if (!longest) continue;
    for (const Request& request : target.waiting) {
      if (request.application != holder->application->id || !extends(*holder, request)) continue;
      first = std::min(first.value_or(Time::max()), request.since + *longest);
    }
  }
  return first;
}

// Returns the earliest time at which a request is granted to break a circle in which each has what the next waits for.
std::optional<Time> AccessController::deadlocked(const Target& target) const {
  std::optional<Time> first;
  const auto look = [&](Ledger::RequestPlace, const Application&, Time due) {
    first = std::min(first.value_or(Time::max()), due);
  };
  each_deadlocked(target, settings_.turn, look);
  return first;
}

bool AccessController::grant_deadlocked(const Moment& moment, const Target& target) {
  std::vector<std::pair<Ledger::RequestPlace, AppId>> due;
  each_deadlocked(target, settings_.turn, [&](Ledger::RequestPlace request, const Application& first, Time at) {
    if (at <= moment.now) due.emplace_back(request, first.id);
  });
  for (const auto& [request, first] : due) {
    if (request->state == RequestState::granted) continue;  // granted together with another request of its application
    apply(moment, *cluster_.find(request->member), request, RequestInput::grant);
    policy::AccessDecision decision;
    decision.choices = {{request->application, first, "deadlock"}};
    tell(moment, target, request->parts, decision);
  }
  return !due.empty();
}

void AccessController::grant_held_up(const Moment& moment, const Target& target) {
  for (const Holder* holder : asking_holders(target)) {
    const auto longest = held_up_for(*holder);
    if (!longest) continue;
    each_request(*holder->application, target, RequestState::queued,
                 [&](const Member& member, Ledger::RequestPlace request) {
                   if (moment.now - request->since >= *longest && extends(*holder, *request))
                     grant(moment, member, request);
                 });
    if (holder->pausing) tell_to_pause(moment, *holder);
  }
}

}  // namespace hocket::coordinator
