// The coordinator is the state machine that decides: (state, event) → (state, commands).
//
// It is pure: no clock, no thread, no socket. Time comes with the events; a time before that of an earlier event counts
// as that earlier one. The same events always give the same commands.
//
//   in:   HELLO START_IO INFORM_IO FINISH_IO RENEW_IO PAUSED_IO IO_PHASE ITERATIONS MALLEABLE RECONFIGURATION
//   START_PROCESSES
//         PROCESS_READY STOP_PROCESSES MAP_ADOPTED BYE (from members), SERVER SERVER_LOAD MAP_STORED DATA_SETS_LEFT
//         SCHEDULER_USED ASK_APPLICATION (from I/O servers), LOST (from the agent), PROCESS_FAILED SERVER_ENDED PROFILE
//         (from the daemon), TICK (from a timer, when `deadline` has come), SET_POLICY RESIZE SET_SERVER SLOW_IO_SERVER
//         ASK_CORES (from a tool), ASK_WAIT (from a member or a tool); others change nothing
//   out:  WELCOME SERVER_MAP QUEUED_IO GRANT_IO PAUSE_IO LEASE_EXPIRED RECONFIGURE PROCESSES_READY (to members),
//         RECONFIGURATION CORES_FOR (to a tool), EXPECTED_WAIT (to the one that asked), START_PROCESSES STOP_PROCESSES
//         DECISION OUTCOME MODEL PROFILE SLOW_IO_SERVER HUNG_IO_SERVER (to the daemon: no member), SERVER_MAP (to I/O
//         servers that write behind), MOVE_DATA_SETS USE_SCHEDULER APPLICATION_FOR APPLICATION_WEIGHT (to I/O servers),
//         REFUSED
//   both: WITHDRAW_RESIZE (from a tool, to the member; from the member, to the tool)
//
// The coordinator does what is the same for all policies: it knows the members, the holders, and how long leases and
// idle holds last. The policy decides which application comes next. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "coordinator/arbitration/access.hpp"
#include "coordinator/arbitration/backlog.hpp"
#include "coordinator/command.hpp"
#include "coordinator/cores/resizing.hpp"
#include "coordinator/cores/steering.hpp"
#include "coordinator/joins/joining.hpp"
#include "coordinator/servers/servers.hpp"
#include "event/event.hpp"
#include "model/cluster.hpp"
#include "policy/combination.hpp"

namespace hocket::coordinator {

// Dispatches each event to its parts: AccessController (targets), Resizing and Joining (malleability), Steering (core
// policies), and Servers (the server map).
class Coordinator {
 public:
  explicit Coordinator(const CoordinatorSettings& settings)
      : settings_(settings),
        policies_(settings.policy),
        cores_(nodes_of(settings)),
        access_(settings_, cluster_, decisions_),
        resizing_(settings_, cluster_, cores_),
        joining_(settings_),
        steering_(settings_, cluster_, cores_, resizing_, decisions_),
        servers_(settings_, cluster_, decisions_) {}
  Coordinator(const Coordinator&) = delete;  // the parts refer to each other
  Coordinator& operator=(const Coordinator&) = delete;

  // Handles one event. Returns the commands in the order in which they are to be sent; they are valid until the next
  // call.
  const std::vector<Command>& handle(const event::Event& event);

  // Returns the time of the next TICK; nullopt if the coordinator waits for nothing. An early TICK changes nothing.
  std::optional<Time> deadline() const;

  // State for listings: applications by id in order of arrival, the policies and the metric in force, and the cores.
  const model::Cluster& cluster() const { return cluster_; }
  const policy::Combination& policies() const { return policies_; }
  const policy::Metric& metric() const { return access_.metric(); }
  const PoliciesInForce& access_policies() const { return access_.policies(); }
  const model::Cores& cores() const { return cores_; }
  // Returns the most processes that resizes may give all applications together.
  std::int64_t most_cores() const { return resizing_.cores(); }
  // True if the daemon must report the end of a process that it started for this request (PROCESS_FAILED).
  bool awaits(AppId app, RequestId request) const { return joining_.awaits(app, request); }
  const Servers& servers() const { return servers_; }
  // Returns an application as a row of a listing, including the prediction of its next I/O phase.
  event::Application describe(const model::Application& application, Time now) const;
  // The place at which this leader stands in the list of leaders, from 1. Above 1, it only grants turns.
  std::int64_t leader_place() const { return leader_place_; }
  // Number of events handled so far.
  std::int64_t events() const { return events_; }

 private:
  // Handlers, one for each event that changes anything. `moment.event.origin` says who sent it.
  void on(const Moment& moment, const event::Hello& hello);
  void on(const Moment& moment, const event::StartIo& start);
  void on(const Moment& moment, const event::InformIo& inform);
  void on(const Moment& moment, const event::FinishIo& finish);
  void on(const Moment& moment, const event::RenewIo& renew);
  void on(const Moment& moment, const event::PausedIo& paused);
  void on(const Moment& moment, const event::ReturnIo& returned);
  void on(const Moment& moment, const event::AskWait& asked);
  void on(const Moment& moment, const event::IoPhase& phase);
  void on(const Moment& moment, const event::Iterations& said);
  void on(const Moment& moment, const event::Malleable& said);
  void on(const Moment& moment, const event::Reconfiguration& record);
  void on(const Moment& moment, const event::StartProcesses& start);
  void on(const Moment& moment, const event::ProcessReady& ready);
  void on(const Moment& moment, const event::StopProcesses& stop);
  void on(const Moment& moment, const event::ProcessFailed& failed);
  void on(const Moment& moment, const event::Profile& profile);
  void on(const Moment& moment, const event::AskCores& asked) { steering_.ask_cores(moment, asked); }
  void on(const Moment& moment, const event::HeldNodes& held);
  void on(const Moment& moment, const event::NodeCores& told);
  void on(const Moment& moment, const event::Resize& resize);
  void on(const Moment& moment, const event::WithdrawResize& withdraw);
  void on(const Moment& moment, const event::Bye& bye);
  void on(const Moment& moment, const event::Lost& lost);
  void on(const Moment& moment, const event::Tick& tick);
  void on(const Moment& moment, const event::SetPolicy& set);
  void on(const Moment& moment, const event::Server& server) { servers_.arrive(moment, server); }
  void on(const Moment& moment, const event::ServerLoad& load) { servers_.load(moment, load); }
  void on(const Moment& moment, const event::MapStored& said) { servers_.stored(moment, said); }
  void on(const Moment& moment, const event::DataSetsLeft& left) { servers_.left(moment, left); }
  void on(const Moment& moment, const event::SchedulerUsed& used) { servers_.scheduler_used(moment, used); }
  void on(const Moment& moment, const event::AskApplication& asked) { servers_.vouch(moment, asked); }
  void on(const Moment& moment, const event::ServerEnded& ended) {
    if (!moment.event.origin.member) servers_.ended(moment, ended);
  }
  void on(const Moment& moment, const event::SetServer& set) { servers_.set(moment, set); }
  void on(const Moment& moment, const event::SlowIoServer& told) { servers_.told_slow(moment, told); }
  void on(const Moment& moment, const event::MapAdopted& said);
  void on(const Moment& moment, const event::SlowAggregator& slow);
  void on(const Moment& moment, const event::LeaderPlace& told);
  template <class Other>
  void on(const Moment&, const Other&) {}

  // Handles the event, and asks the servers policy after it.
  void take(const event::Event& event);
  // Handles events of the backlog that are due, and those of the sender's application if this event follows them.
  void take_late(const event::Event& event);
  void take_all_of(AppId app);
  // Puts an event of a batch into the backlog, if batches of other members may have earlier ones. Returns false if not.
  bool keep_for_later(const event::Event& event);
  // Sets the access policy for one application or one target.
  void set_policy_for(const Moment& moment, const event::SetPolicy& set);
  // Publishes MODEL when an application's I/O phases stop or start to fit a period.
  void tell_model(const Moment& moment, const model::Application& application);
  // Removes the member that sent the event from all parts. Does nothing for a tool.
  AppId remove(const Moment& moment);
  // Carries out the resizes that have waited for cores of the resource manager. `refusal`: why it gives none.
  void end_waits(const Moment& moment, const std::string& refusal);
  // Answers the sender of the event with REFUSED.
  void refuse(const Moment& moment, std::string text);

  CoordinatorSettings settings_;
  policy::Combination policies_;
  model::Cluster cluster_;
  model::Cores cores_;
  std::int64_t leader_place_ = 1;
  std::int64_t decisions_ = 0;  // published by AccessController, Steering and Servers together
  AccessController access_;
  Backlog backlog_;
  Resizing resizing_;
  Joining joining_;
  Steering steering_;
  Servers servers_;
  std::set<AppId> irregular_;  // applications whose I/O phases fit no period, as published last
  Time now_{};
  std::int64_t events_ = 0;
  std::vector<Command> commands_;
};

}  // namespace hocket::coordinator
