// The leader is the core of hocketd. It passes events of the node to the coordinator, carries out the coordinator's
// commands, and publishes and traces both.
//
// Everything runs on the one thread that calls `run`. For each event the leader first decides and answers, and then
// publishes and traces. So subscribers and the trace never delay a grant.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bus/agent.hpp"
#include "config/settings.hpp"
#include "coordinator/coordinator.hpp"
#include "daemon/decisions.hpp"
#include "daemon/process_starter.hpp"
#include "daemon/profile_store.hpp"
#include "daemon/server_processes.hpp"
#include "trace/writer.hpp"

namespace hocket::daemon {

// Owns the node agent, the coordinator, the trace and the stores. Not thread-safe.
class Leader {
 public:
  // Listens in `directory`, which the caller has prepared and locked. Returns an error if the policy file, the trace
  // that the settings name, the socket or the signals are not usable.
  static Result<std::unique_ptr<Leader>> start(config::DaemonSettings settings, const std::string& directory);

  // Serves until SIGTERM, SIGINT or SIGHUP, until no member was connected for the time in the settings, or until the
  // socket is removed. The caller must have blocked these signals and SIGCHLD.
  void run();

  const std::string& socket() const { return socket_; }

 private:
  Leader(const config::DaemonSettings& settings, const coordinator::CoordinatorSettings& prepared,
         const std::string& directory);

  // The parts of start(). Only a trace at the default place may fail: the daemon then runs without one.
  Status listen();
  Status open_trace(const std::string& directory);
  Status catch_signals();
  void watch_socket();

  // Processes one event: coordinator, answers, own commands, trace. LIST and EXPLAIN are answered here and not
  // traced.
  void handle(event::Event&& event);
  // Carries out a command without addressee, which is for the daemon itself: processes, decisions, and log lines.
  void carry_out(const event::Body& command);
  void take_ended_processes();
  // Passes the failures of started processes to the coordinator, after the event that caused them is recorded.
  void tell_failed_processes();
  // Watches the process of an I/O server that registers, and notes that its connection ends.
  void follow_server(const event::Event& event);
  void kill_server(const event::HungIoServer& hung);
  // Passes the ends of I/O servers to the coordinator.
  void tell_ended_servers();
  void answer_list(MemberId to, Time now);
  void answer_explain(MemberId to, const event::Explain& asked);
  event::Daemon describe_daemon(Time now) const;
  // Looks an application up in the profile store when it arrives, and stores what was measured when it leaves.
  void feed_profiles(const event::Event& hello, const std::vector<coordinator::Command>& commands);
  void tell_profiles();
  void remember(const std::string& program, const std::string& mpi, const std::vector<coordinator::Command>& commands);
  // Publishes and traces an event and its commands.
  void record(event::Event&& event, const std::vector<coordinator::Command>& commands);
  void tick_if_due(Time now);
  // Returns how long `run` may sleep; nothing: without limit.
  std::optional<Duration> longest_sleep(Time now) const;
  bool has_been_idle(Time now);

  config::DaemonSettings settings_;
  std::string socket_;
  std::string node_;
  Time started_;
  coordinator::Coordinator coordinator_;
  std::unique_ptr<bus::Agent> agent_;
  std::optional<trace::Writer> trace_;
  std::string trace_path_;
  std::string trace_error_;
  ProcessStarter starter_;
  ServerProcesses servers_;
  Decisions decisions_;
  ProfileStore profiles_;
  std::vector<event::Profile> found_profiles_;          // found, but not passed to the coordinator yet
  std::string profiles_wrong_;                          // last problem of the store in the log, to log each only once
  std::vector<event::ProcessFailed> failed_processes_;  // not passed to the coordinator yet
  bus::Fd signals_;
  bus::Fd socket_changes_;
  bool stopped_ = false;
  Time last_member_;  // when a member was last connected
};

}  // namespace hocket::daemon
