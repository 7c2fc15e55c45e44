// The Ledger is the one owner of the facts about requests: which requests wait and in which order, which are granted
// and until when, which applications hold a target, and when something is due. It keeps all indexes of these facts
// consistent. AccessController decides what changes.
//
// The facts lie in the records of the model. Policies read some of them there; the others (model::LedgerOnly) only the
// Ledger opens. Only the Ledger changes either.
//
// Pure, not thread-safe. A call costs as much as the member has requests, and the application targets; `suspend` costs
// as much as the queue is long.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "coordinator/arbitration/nodes.hpp"
#include "model/cluster.hpp"

namespace hocket::coordinator {

class Ledger {
 public:
  using RequestPlace = model::Requests::iterator;
  using HolderPlace = model::Holders::iterator;

  // A lease lasts for `lease`. Waiting requests are due for a reminder every `keep_alive`.
  Ledger(Duration lease, Duration keep_alive) : lease_(lease), keep_alive_(keep_alive) {}

  // ---- facts that policies cannot read

  static const model::RequestFacts& of(const model::Request& request) { return request.ledger.facts_; }
  static const model::HolderFacts& of(const model::Holder& holder) { return holder.ledger.facts_; }
  static const model::TargetFacts& of(const model::Target& target) { return target.ledger.facts_; }

  // ---- requests. Times never run backwards. The functions that return a holder return that of the request.

  // Adds a request at the end of its target's queue.
  RequestPlace add(model::Member& member, model::Request request, Time now);
  // Removes a queued request.
  void withdraw(model::Member& member, RequestPlace request, Time now);
  // Grants a queued request, and begins its lease. Its application becomes a holder of the target unless it is one.
  HolderPlace grant(const model::Member& member, RequestPlace request, Time now);
  // Suspends a granted request: it returns to its place in the queue. The holder may have no grant left.
  HolderPlace suspend(const model::Member& member, RequestPlace request, Time now);
  // Removes a granted request. The holder may have no grant left.
  HolderPlace end(model::Member& member, RequestPlace request, Time now);
  // Begins all leases of the member's operations on that target anew.
  void renew(const model::Member& member, const model::Target& target, Time now);

  // ---- delegations. They are granted requests that last until they are returned.

  // Gives the member a delegation for the parts of its granted request. No lease runs before `recall`.
  void delegate(model::Member& member, const model::Request& request, Time now);
  // Ends the lease of a granted request, if it has one: it was begun under a delegation that was not recalled, or is
  // one that was returned.
  void exempt(RequestPlace request);
  // Records RECALL_IO for a delegation. Its lease begins.
  void recall(const model::Member& member, RequestPlace delegation, Time now);
  // Begins the leases of the member's requests under a delegation for which none runs.
  void begin_leases(const model::Member& member, const model::Request& delegation, Time now);
  // Sets when the idle hold of a holder ends whose last access has ended, but which has a delegation.
  static void stay_until(model::Holder& holder, Time until) { facts(holder).kept_until = until; }

  // ---- pauses

  // Records that the holder has to give the target up, or does not have to any more.
  static void begin_pause(model::Holder& holder, Time now);
  static void end_pause(model::Holder& holder);
  // Records PAUSE_IO for a granted request. Returns false if an earlier one is not answered yet.
  static bool tell(RequestPlace request) { return !std::exchange(facts(*request).told, true); }
  // Records the answer to PAUSE_IO.
  static void answer(RequestPlace request) { facts(*request).told = false; }

  // ---- bandwidth shares

  // Sets the holder's share, 0 to 1. Returns true if it has changed.
  static bool set_share(model::Holder& holder, double share) {
    facts(*holder.target).shared |= share < 1;
    return std::exchange(facts(holder).share, share) != share;
  }
  // Forgets that a holder of the target has less than the whole; `set_share` of each of them follows.
  static void begin_shares(model::Target& target) { facts(target).shared = false; }

  // ---- holders without grants

  // Begins an idle hold, which ends at `until`.
  static void keep(HolderPlace holder, Time until);
  // Removes the holder.
  void free(HolderPlace holder);

  // ---- what is due

  // Bounds the wait of a queued request: it is `overdue` from that time on. The bound goes with the wait.
  void bound(RequestPlace request, Time at);
  // Sets when the policy wants to be called again about the target; Time{}: not at a time.
  static void ask_again(model::Target& target, Time again) { facts(target).again = again; }
  // Sets when the target is due for `each_due`; Time{}: never.
  void set_timer(model::Target& target, Time wake);
  // Returns true if the target's waiting requests are due for a reminder, and sets the time of the next one.
  bool remind(model::Target& target, Time now) const;

  // Return a request whose lease or bound has passed, the earliest first.
  std::optional<RequestPlace> expired(Time now);
  std::optional<RequestPlace> overdue(Time now) const;
  // Calls `visit(target)` for each target whose timer has passed, the earliest first. `visit` must not set timers.
  template <class Visit>
  void each_due(Time now, Visit visit) const {
    for (const auto& [due, target] : timers_) {
      if (due.first > now) return;
      visit(*target);
    }
  }
  // Returns the next time at which a lease, a bound or a timer passes.
  std::optional<Time> deadline() const;

 private:
  static model::RequestFacts& facts(model::Request& request) { return request.ledger.facts_; }
  static model::HolderFacts& facts(model::Holder& holder) { return holder.ledger.facts_; }
  static model::TargetFacts& facts(model::Target& target) { return target.ledger.facts_; }

  void forget_bound(RequestPlace request);
  void begin_lease(RequestPlace request, Time now);
  static bool has_lease(const model::Request& request) { return of(request).expires != Time{}; }
  // Sets the holder's parts to those of its grants. Those of `ended` stay if it has none left.
  static void set_parts(HolderPlace holder, const model::PartSet& ended);

  Duration lease_;
  Duration keep_alive_;
  Nodes<model::Request> requests_;
  Nodes<model::Holder> holders_;
  model::Requests granted_;   // by the end of the lease: all leases have the same length
  model::Requests unleased_;  // granted, without a lease
  std::map<std::pair<Time, std::uint64_t>, model::Target*> timers_;        // by (wake, number)
  std::map<std::tuple<Time, MemberId, RequestId>, RequestPlace> bounded_;  // queued requests with a bound
};

}  // namespace hocket::coordinator
