// The state machine that decides: (state, event) → (state, commands).
//
// Pure: no clock, no thread, no socket. Time comes with the events; a time before that of an earlier event is taken as
// that earlier one. The same events give the same commands, always.
//
//   in:   HELLO START_IO FINISH_IO RENEW_IO PAUSED_IO IO_PHASE MALLEABLE RECONFIGURATION START_PROCESSES PROCESS_READY
//         STOP_PROCESSES MAP_ADOPTED BYE (of members), SERVER SERVER_LOAD (of I/O servers), LOST (of the agent),
//         PROCESS_FAILED PROFILE (of the daemon), TICK (of a timer, when `deadline` has come), SET_POLICY RESIZE
//         SET_SERVER SLOW_IO_SERVER (of a tool); others change nothing
//   out:  WELCOME SERVER_MAP QUEUED_IO GRANT_IO PAUSE_IO LEASE_EXPIRED RECONFIGURE PROCESSES_READY (to members),
//   RECONFIGURATION
//         (to a tool), START_PROCESSES STOP_PROCESSES DECISION OUTCOME SLOW_IO_SERVER (to the daemon itself: to no
//         member), REFUSED
//   both: WITHDRAW_RESIZE (of a tool, to the member; of the member, to the tool)
//
// What is the same for all policies is done here: who is who, who holds what, how long a lease or a kept target lasts.
// Who goes next is the policy's. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/access.hpp"
#include "coordinator/command.hpp"
#include "coordinator/joining.hpp"
#include "coordinator/resizing.hpp"
#include "coordinator/servers.hpp"
#include "coordinator/steering.hpp"
#include "event/event.hpp"
#include "model/cluster.hpp"
#include "policy/combination.hpp"

namespace hocket::coordinator {

class Coordinator {
 public:
  explicit Coordinator(const Settings& settings)
      : settings_(settings),
        policies_(settings.policy),
        cores_(nodes_of(settings)),
        access_(settings_, cluster_, decisions_),
        resizing_(settings_, cluster_, cores_),
        joining_(settings_),
        steering_(settings_, cluster_, cores_, resizing_, decisions_),
        servers_(settings_, cluster_) {}
  Coordinator(const Coordinator&) = delete;  // its parts point at each other
  Coordinator& operator=(const Coordinator&) = delete;

  // The commands, in the order in which they are to be sent; valid until the next call.
  const std::vector<Command>& handle(const event::Event& event);

  // When the next TICK is due; nullopt: nothing is waited for. A TICK that comes early changes nothing.
  std::optional<Time> deadline() const;

  // For listings: an application by its id, all of them in order of arrival.
  const model::Cluster& cluster() const { return cluster_; }
  const policy::Combination& policies() const { return policies_; }
  const policy::Metric& metric() const { return access_.metric(); }
  const model::Cores& cores() const { return cores_; }
  // Whether the end of a process that was started for this request is to be told with PROCESS_FAILED.
  bool awaits(AppId app, RequestId request) const { return joining_.awaits(app, request); }
  const Servers& servers() const { return servers_; }
  // Events handled.
  std::int64_t events() const { return events_; }

 private:
  void on(const Moment& moment, const event::Hello& hello);
  void on(const Moment& moment, const event::StartIo& start);
  void on(const Moment& moment, const event::FinishIo& finish);
  void on(const Moment& moment, const event::RenewIo& renew);
  void on(const Moment& moment, const event::PausedIo& paused);
  void on(const Moment& moment, const event::IoPhase& phase);
  void on(const Moment& moment, const event::Iterations& said);
  void on(const Moment& moment, const event::Malleable& said);
  void on(const Moment& moment, const event::Reconfiguration& record);
  void on(const Moment& moment, const event::StartProcesses& start);
  void on(const Moment& moment, const event::ProcessReady& ready);
  void on(const Moment& moment, const event::StopProcesses& stop);
  void on(const Moment& moment, const event::ProcessFailed& failed);
  void on(const Moment& moment, const event::Profile& profile);
  void on(const Moment& moment, const event::Resize& resize);
  void on(const Moment& moment, const event::WithdrawResize& withdraw);
  void on(const Moment& moment, const event::Bye& bye);
  void on(const Moment& moment, const event::Lost& lost);
  void on(const Moment& moment, const event::Tick& tick);
  void on(const Moment& moment, const event::SetPolicy& set);
  void on(const Moment& moment, const event::Server& server) { servers_.arrive(moment, server); }
  void on(const Moment& moment, const event::ServerLoad& load) { servers_.load(moment, load); }
  void on(const Moment& moment, const event::SetServer& set) { servers_.set(moment, set); }
  void on(const Moment& moment, const event::SlowIoServer& told) { servers_.told_slow(moment, told); }
  void on(const Moment& moment, const event::MapAdopted& said);
  template <class Other>
  void on(const Moment&, const Other&) {}

  static void tell_model(const Moment& moment, model::Application& application);
  void remove(const Moment& moment);
  void refuse(const Moment& moment, std::string text);

  Settings settings_;
  policy::Combination policies_;
  model::Cluster cluster_;
  model::Cores cores_;
  std::int64_t decisions_ = 0;  // told, of access and of cores
  Access access_;
  Resizing resizing_;
  Joining joining_;
  Steering steering_;
  Servers servers_;
  Time now_{};
  std::int64_t events_ = 0;
  std::vector<Command> commands_;
};

// An application for a listing, its predicted next phase included.
event::Application describe(const model::Application& application, Time now);

}  // namespace hocket::coordinator
