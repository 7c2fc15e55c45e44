// Access to targets: requests, grants, interruptions, leases, and the time for which a target is kept between two
// operations.
//
// A part of the coordinator, which knows the members; pure and not thread-safe as it is. The cost of a call depends on
// the requests of the member and the holders of the target that it is about.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/command.hpp"
#include "coordinator/nodes.hpp"
#include "coordinator/request_states.hpp"
#include "model/cluster.hpp"

namespace hocket::coordinator {

class Access {
 public:
  // All must outlive it. `decisions`: how many were told; shared with others who decide.
  Access(const Settings& settings, model::Cluster& cluster, std::int64_t& decisions)
      : settings_(settings),
        cluster_(cluster),
        decisions_(decisions),
        policy_(settings.policy.access),
        access_settings_(settings.access) {
    access_settings_.longest_wait = settings.turn;
    access_settings_.most_slowdown = most_slowdown_of(settings, *policy_);
  }

  // A request of a number that the member has not used before; answers GRANT_IO or QUEUED_IO.
  void start(const Moment& moment, model::Member& member, const event::StartIo& start);
  // These three ignore a request that is not there (any more).
  void finish(const Moment& moment, model::Member& member, const event::FinishIo& finish);
  void renew(const Moment& moment, model::Member& member, const event::RenewIo& renew);
  void paused(const Moment& moment, model::Member& member, const event::PausedIo& paused);
  // The application's I/O phase is over, as the member tells: no target is kept for it.
  void end_phase(const Moment& moment, const model::Member& member, const event::IoPhase& phase);
  // The member is about to go: takes back all it has and asks for, and, if it is the last of its application, what is
  // kept for that.
  void leave(const Moment& moment, model::Member& member);
  // Leases that are over, targets that were kept long enough, reminders.
  void tick(const Moment& moment);
  void set_policy(const Moment& moment, const policy::Policy& policy, const policy::Metric& metric);

  std::optional<Time> deadline() const;
  const policy::Policy& policy() const { return *policy_; }
  const policy::Metric& metric() const { return access_settings_.metric; }

 private:
  using Place = model::Requests::iterator;
  enum class After { keep, free };  // whether a target is kept for the application after its last grant there

  void apply(const Moment& moment, model::Member& member, Place request, RequestInput input, After after = After::free);
  void grant(const Moment& moment, const model::Member& member, Place request);
  void grant_queued_of(const Moment& moment, const model::Application& application, const model::Target& target);
  void requeue(model::Member& member, Place request, Time now);
  bool interrupt(const Moment& moment, model::Target& target, const policy::Decision& decision);
  void tell_to_pause(const Moment& moment, const model::Holder& holder);
  void go_on_if_alone(const Moment& moment, model::Target& target);
  std::vector<const model::Holder*> asking_holders(const model::Target& target) const;
  std::optional<Duration> held_up_for(const model::Holder& holder) const;
  std::optional<Time> held_up(const model::Target& target) const;
  void grant_held_up(const Moment& moment, const model::Target& target);
  std::optional<Time> deadlocked(const model::Target& target) const;
  bool grant_deadlocked(const Moment& moment, const model::Target& target);
  void share_out(const Moment& moment, model::Target& target, const std::vector<policy::Share>& shares);
  void tell(const Moment& moment, const model::Target& target, const policy::Decision& decision);
  void tell_wait(const Moment& moment, model::Application& application, const model::Target& target);
  void record(const Moment& moment, const model::Application& application, const model::Application* other,
              const model::Target& target, std::string_view action, const std::string& costs);
  void withdraw(model::Member& member, Place request, Time now);
  void give_back(model::Member& member, Place request, RequestAction how, After after, Time now);
  Duration hold_for(const model::Holder& holder) const;
  bool is_small(const model::Application& application, const model::Request& request) const;
  void renew_leases(const model::Member& member, const model::Target& target, Time now);
  // Whether who has the target is to let those who wait come first.
  bool is_turn_over(const model::Target& target, Time now) const;
  void count_progress(model::Target& target, Time now) {
    model::count_progress(target, now, access_settings_.interference);
  }
  void end_demand(model::Application& application);
  void free_holder(model::Holders::iterator holder);
  template <class Condition>
  void free_kept(model::Application& application, Condition condition);
  void expire_leases(const Moment& moment);
  void free_kept_long_enough(model::Target& target, Time now);

  // What an event changes is settled at its end: the policy is asked once about each target that was touched, in order
  // of their numbers.
  void touch(model::Target& target) { touched_.push_back(&target); }
  void settle(const Moment& moment);
  void ask_policy_if_any(const Moment& moment, model::Target& target);
  void ask_policy(const Moment& moment, model::Target& target);
  void send_reminders(const Moment& moment, model::Target& target);
  void set_timer(model::Target& target);
  // The bound on how much slower than uncoordinated waiting makes an application (slowdown.cpp).
  void watch_slowdown(const model::Application& application, const model::Request& request, Time now);
  void tell_slowdown(const Moment& moment, const model::Application& application);
  void bound_wait(const model::Member& member, Place request, Time now);
  void forget_bound(Place request);
  void grant_too_slow(const Moment& moment);

  const Settings& settings_;
  model::Cluster& cluster_;
  std::int64_t& decisions_;
  const policy::Policy* policy_;
  policy::AccessSettings access_settings_;
  Nodes<model::Request> requests_;
  Nodes<model::Holder> holders_;
  model::Requests granted_;  // in order of the end of their leases, which all have the same length
  std::map<std::pair<Time, std::uint64_t>, model::Target*> timers_;  // targets where somebody waits, by (wake, number)
  std::vector<model::Target*> touched_;
  std::map<std::tuple<Time, MemberId, RequestId>, Place> too_slow_;  // queued requests that have such a bound
};

}  // namespace hocket::coordinator
