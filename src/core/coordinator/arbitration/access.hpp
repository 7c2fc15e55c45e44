// AccessController decides about requests for targets: it grants, queues, suspends and revokes them. It also decides
// about idle holds, that is, the time for which a target stays granted between two operations. The ledger keeps the
// facts.
//
// AccessController is a part of the coordinator, which knows the members; pure, not thread-safe. A call costs as much
// as the member has requests and the target has holders.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/arbitration/delegation_states.hpp"
#include "coordinator/arbitration/ledger.hpp"
#include "coordinator/arbitration/policies_in_force.hpp"
#include "coordinator/arbitration/request_states.hpp"
#include "coordinator/command.hpp"
#include "model/cluster.hpp"

namespace hocket::coordinator {

// The access controller: it asks the access policy about each target that an event has changed, and carries out its
// decision.
class AccessController {
 public:
  // All arguments must outlive this object. `decisions` counts the published decisions; Steering shares the counter.
  AccessController(const CoordinatorSettings& settings, model::Cluster& cluster, std::int64_t& decisions)
      : settings_(settings),
        cluster_(cluster),
        decisions_(decisions),
        policies_(*settings.policy.access, settings.targets),
        access_settings_(settings.access),
        ledger_(settings.lease, settings.keep_alive) {
    access_settings_.longest_wait = settings.turn;
    access_settings_.most_slowdown = most_slowdown_of(settings, policies_.general());
  }

  // Handles START_IO with a number that the member has not used before. It answers GRANT_IO or QUEUED_IO.
  void start(const Moment& moment, model::Member& member, const event::StartIo& start);
  // Handles START_IO of an operation that the member has begun under a delegation. It needs no answer.
  void begun(const Moment& moment, model::Member& member, const event::StartIo& start);
  // Handles INFORM_IO: decides anew with what the application has prepared, or ends its I/O phase.
  void inform(const Moment& moment, const model::Member& member, const event::InformIo& inform);
  // Handle FINISH_IO, RENEW_IO and PAUSED_IO. They ignore a request that does not exist (any more).
  void finish(const Moment& moment, model::Member& member, const event::FinishIo& finish);
  void renew(const Moment& moment, model::Member& member, const event::RenewIo& renew);
  void paused(const Moment& moment, model::Member& member, const event::PausedIo& paused);
  // Handles RETURN_IO: what the member has begun under the delegation is granted as any other request from now on.
  void returned(const Moment& moment, model::Member& member, const event::ReturnIo& returned);
  // Ends the lease of a delegation whose answer has come and is handled later, by `returned`.
  void answered(const model::Member& member, const event::ReturnIo& returned);
  // Answers ASK_WAIT of a member of `asker`, or of a tool (nullptr). Requests and grants stay as they are.
  void expect_wait(const Moment& moment, const model::Application* asker, const event::AskWait& asked);
  // Handles the end of the application's I/O phase, as the member reports it: idle holds end, and the model learns from
  // the phase.
  void end_phase(const Moment& moment, const model::Member& member, const event::IoPhase& phase);
  // Handles the departure of a member, before it is removed: revokes its grants and withdraws its requests. With the
  // last member of an application, its idle holds end too.
  void leave(const Moment& moment, model::Member& member);
  // Expires leases, ends idle holds, sends reminders, and grants what is due.
  void tick(const Moment& moment);
  // Replaces the access policy and the metric, and asks the new policy about every target in use.
  void set_policy(const Moment& moment, const policy::Policy& policy, const policy::Metric& metric);
  // Set the policy for a target, or for an application; without one, what holds for others holds for it again.
  void set_target_policy(const Moment& moment, const std::string& target, const TargetPolicy& set);
  void set_application_policy(const Moment& moment, AppId app, const policy::Policy* policy);

  // Returns the time of the next `tick` that can change anything.
  std::optional<Time> deadline() const;
  const PoliciesInForce& policies() const { return policies_; }
  const policy::Metric& metric() const { return access_settings_.metric; }

 private:
  enum class IdleHold { keep, free };     // keep: an idle hold may follow the application's last grant; free: none does
  enum class GrantAnswer { send, none };  // none: the member has begun the operation, and expects no GRANT_IO

  static bool is_between_accesses(const model::Application& application);
  void begin_access(model::Request& request, model::Application& application, const event::StartIo& start, Time now);
  // Feeds an input into the request's state machine (request_states.hpp) and carries out the action.
  void apply(const Moment& moment, model::Member& member, Ledger::RequestPlace request, RequestInput input,
             IdleHold after = IdleHold::free);
  // Moves the request to the granted ones, makes its application a holder, and sends GRANT_IO.
  void grant(const Moment& moment, const model::Member& member, Ledger::RequestPlace request,
             GrantAnswer answer = GrantAnswer::send);
  void grant_queued_of(const Moment& moment, const model::Application& application, const model::Target& target);
  // Suspends a granted request: it returns to its place in the queue. Frees the target with the last grant.
  void requeue(const model::Member& member, Ledger::RequestPlace request, Time now);
  // Preempts the holders that the policy names. Returns true if one of them was idle, so that the target became free.
  bool interrupt(const Moment& moment, model::Target& target, const policy::AccessDecision& decision);
  // Sends PAUSE_IO for each granted request of the holder, once each.
  void tell_to_pause(const Moment& moment, const model::Holder& holder);
  // Cancels a pause if no other application waits any more. The holder's suspended requests are granted again.
  void go_on_if_alone(const Moment& moment, model::Target& target);
  // Returns the holders that have a grant and wait for another one. An application may appear twice.
  std::vector<const model::Holder*> asking_holders(const model::Target& target) const;
  // Returns the time after which a holder's further request is granted, although the holder has to give the target up.
  // Returns nothing if the holder must wait for its next time slice, or is not to give the target up.
  std::optional<Duration> held_up_for(const model::Holder& holder) const;
  // Returns the time at which `grant_held_up` has to grant a request at this target.
  std::optional<Time> held_up(const model::Target& target) const;
  // parts.cpp: returns the parts of the target that START_IO names. If they cannot be used, it publishes why, and
  // returns the whole target.
  model::PartSet parts_of(const Moment& moment, const model::Application& application, model::Target& target,
                          const event::StartIo& start);
  // Returns the sets of parts of the target about which policies have to decide, in order of arrival.
  std::vector<model::PartSet> contests_of(const model::Target& target) const;
  // Grants holders the requests for further parts that nobody else holds. Without it, such a request could wait behind
  // one that waits for its own application.
  void grant_further(const Moment& moment, const model::Target& target);
  // Grants the first request for these parts, about which a policy preferred a request for others, unless it waits for
  // a holder after all. In that other contest the policy may have preferred a third request, and so on in a circle.
  void grant_preferred(const Moment& moment, const model::Target& target, const model::PartSet& parts);
  // Grants a holder's requests that have waited for too long beside its own grants.
  void grant_held_up(const Moment& moment, const model::Target& target);
  // Returns the time at which the first request in a deadlock at this target is granted, to break the circle.
  std::optional<Time> deadlocked(const model::Target& target) const;
  // Grants the requests that are due because of a deadlock. Returns true if one was due.
  bool grant_deadlocked(const Moment& moment, const model::Target& target);
  // Sets the holders' bandwidth shares and sends those that have changed. An empty list gives each the whole.
  void share_out(const Moment& moment, model::Target& target, const std::vector<policy::BandwidthShare>& shares);
  // Publishes the choices of a decision (DECISION) about these parts, each once in a row.
  void tell(const Moment& moment, const model::Target& target, const model::PartSet& parts,
            const policy::AccessDecision& decision);
  // Publishes a DECISION for a wait that the policy did not explain.
  void tell_wait(const Moment& moment, model::Application& application, const model::Request& request);
  // Publishes one DECISION about `application`, for the reason `choice`. `other` is nullptr if it waits for no
  // particular one.
  void record(const Moment& moment, const model::Application& application, const model::Application* other,
              std::string_view action, event::AccessChoice choice);
  void withdraw(model::Member& member, Ledger::RequestPlace request, Time now);
  // Removes a granted request. With the application's last grant on the target, the target becomes free or an idle hold
  // begins.
  void give_back(model::Member& member, Ledger::RequestPlace request, RequestAction how, IdleHold after, Time now);
  // Returns how long the target stays granted to an idle holder.
  Duration hold_for(const model::Holder& holder) const;
  // True if the access is expected to be no longer than CoordinatorSettings::small_access.
  bool is_small(const model::Application& application, const model::Request& request) const;
  // True if the time slice of holders of these parts is over: a request for one of them has waited for
  // CoordinatorSettings::turn.
  bool is_turn_over(const model::Target& target, const model::PartSet& parts, Time now) const;
  // Updates the estimated progress of the holders. Call it before any change among them.
  void count_progress(model::Target& target, Time now) {
    model::count_progress(target, now, access_settings_.interference);
  }
  void learn_part(const Moment& moment, model::Application& application, const event::IoPhase& phase);
  void learn_phase(const Moment& moment, model::Application& application, const model::Member& member,
                   const event::IoPhase& phase);
  void end_demand(model::Application& application);
  // Removes a holder without grants, so that others may have the target.
  void free_holder(Ledger::HolderPlace holder);
  // Ends the application's idle holds that satisfy the condition.
  template <class Condition>
  void free_kept(model::Application& application, Condition condition);
  void expire_leases(const Moment& moment);
  void free_kept_long_enough(model::Target& target, Time now);

  // Marks a target as changed. `settle` handles the marked targets at the end of an event, in the order of their
  // numbers, and asks the policy once about each.
  void touch(model::Target& target) { touched_.push_back(&target); }
  void settle(const Moment& moment);
  // Asks the policy about the target if a request waits there, or if the policy assigns bandwidth shares to holders.
  void ask_policy_if_any(const Moment& moment, model::Target& target);
  // Asks the policies of the applications at the target and carries out what they decide: interruptions, grants,
  // shares, and the time of the next question.
  void ask_policies(const Moment& moment, model::Target& target);
  // Asks one policy about these parts, interrupts, and grants. Returns its last decision.
  struct ContestDecision {
    model::PartSet parts;
    policy::AccessDecision decision;
    bool prefers_others;  // it would grant requests for other parts only
    bool freed;           // it has ended an idle hold
  };
  std::vector<ContestDecision> ask_contests(const Moment& moment, model::Target& target);
  ContestDecision ask_policy(const Moment& moment, model::Target& target, const model::PartSet& parts,
                             const policy::Policy& policy);
  void ask_everywhere(const Moment& moment);
  // delegating.cpp: note since when an application is the only one that uses the target.
  static void note_use(const model::Application& application, const model::Target& target, Time now);
  static void note_end_of_use(const model::Application& application, const model::Target& target, Time now);
  // Delegates the parts of a request to its member, if the application was alone for long enough. The GRANT_IO must be
  // among the commands.
  void delegate_if_alone(const Moment& moment, model::Member& member, Ledger::RequestPlace request);
  bool may_delegate(const Moment& moment, const model::Member& member, const model::Request& request) const;
  // Returns the moment at which an event of a batch happened, `ago` before now, but not before `first`.
  static Moment when(const Moment& moment, const model::Application& application, Duration ago, Time first = {});
  // Recalls what others than the request's application have of its parts.
  void recall_for(const Moment& moment, const model::Request& request);
  void recall(const Moment& moment, const model::Holder& holder, const model::PartSet& parts,
              const std::string& because_of);
  void recall_all(const Moment& moment);
  // True if a request for these parts may wait for an answer to RECALL_IO. Policies are not asked before it has come.
  static bool awaits_return(const model::Target& target, const model::PartSet& parts);
  void end_delegation(const Moment& moment, model::Member& member, Ledger::RequestPlace delegation,
                      DelegationInput why);
  // Publishes a DECISION for each wait at the target that the policy did not explain.
  void tell_waits(const Moment& moment, const model::Target& target);
  // mixing.cpp: returns the request with the file system of its file as its target, because the operator holds that.
  // Parts of the named target do not count for it.
  event::StartIo overruled(const Moment& moment, const model::Application& application, const event::StartIo& start);
  // mixing.cpp: returns what a policy decides about the applications under it.
  policy::AccessDecision decision_of(const Moment& moment, const model::Target& target, const model::PartSet& parts,
                                     const policy::Policy& policy, bool& prefers_others) const;
  // Returns the time at which a request is granted beside holders under other policies; nothing if there are none, or
  // if an application under its own policy holds the target too.
  std::optional<Time> beside_others_at(const model::Target& target, const model::Request& request) const;
  std::optional<Time> beside_others(const model::Target& target) const;  // the first one
  void grant_beside_others(const Moment& moment, const model::Target& target);
  // Repeats QUEUED_IO to the waiting members if the reminder is due.
  void send_reminders(const Moment& moment, model::Target& target);
  // Returns the next time at which something is due at the target; Time{}: never.
  Time wake_time(const model::Target& target) const;
  // Enforces the bound on how much slower than uncoordinated an application becomes by waiting (slowdown.cpp).
  void watch_slowdown(const model::Application& application, const model::Request& request, Time now);
  void tell_slowdown(const Moment& moment, const model::Application& application);
  void tell_announced(const Moment& moment, const model::Application& application, const model::Announcements& before,
                      const event::AnnouncedIo& compared);
  void tell_wrong(const Moment& moment, const model::Application& application, const std::string& error);
  // Returns a new DECISION about the application and this target, without a reason.
  event::Decision decision_on(const model::Application& application, const std::string& target,
                              std::string_view action);
  // Publishes a DECISION about the application's own information, on its present target.
  void publish(const Moment& moment, const model::Application& application, std::string_view action,
               event::Reason reason);
  void bound_wait(const model::Member& member, Ledger::RequestPlace request, Time now);
  void grant_too_slow(const Moment& moment);

  const CoordinatorSettings& settings_;
  model::Cluster& cluster_;
  std::int64_t& decisions_;
  PoliciesInForce policies_;
  policy::AccessSettings access_settings_;
  Ledger ledger_;
  std::vector<model::Target*> touched_;
  std::map<AppId, std::pair<std::string, std::string>> ignored_;    // file and parts of the last PartsIgnored
  std::map<AppId, std::set<std::string>> wrong_;                    // errors of its published InformationIgnored
  std::map<AppId, std::pair<std::string, std::string>> overruled_;  // file and named target of the last TargetHeld
};

}  // namespace hocket::coordinator
