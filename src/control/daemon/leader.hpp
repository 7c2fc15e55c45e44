// The leader is the core of hocketd. It passes events of the node to the coordinator, carries out the coordinator's
// commands, and publishes and traces both.
//
// Everything runs on the one thread that calls `run`, except for the profile store, the trace, and the start of
// processes: this thread touches no file that may be on a network file system. For each event the leader first decides
// and answers, and then publishes and traces. So subscribers and the trace never delay a grant.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"
#include "bus/agent.hpp"
#include "config/settings.hpp"
#include "coordinator/coordinator.hpp"
#include "daemon/daemon_end.hpp"
#include "daemon/decisions.hpp"
#include "daemon/metrics_endpoint.hpp"
#include "daemon/process_starter.hpp"
#include "daemon/profile_worker.hpp"
#include "daemon/server_processes.hpp"
#include "daemon/server_starter.hpp"
#include "daemon/servers_elsewhere.hpp"
#include "link/node_agents.hpp"
#include "trace/recorder.hpp"

namespace hocket::daemon {

// Owns the node agent, the coordinator, the trace and the stores. Not thread-safe.
class Leader {
 public:
  // Listens in `directory`, which the caller has prepared and locked. Returns an error if the policy file, the trace
  // that the settings name, the socket or the signals are not usable. `tls`: not nullptr if agents of other nodes may
  // join, at the address in the settings.
  static Result<std::unique_ptr<Leader>> start(config::DaemonSettings settings, const std::string& directory,
                                               std::unique_ptr<link::Tls> tls = nullptr);

  // Serves until SIGTERM, SIGINT or SIGHUP, until no member was connected for the time in the settings, or until the
  // socket is removed. The caller must have blocked these signals and SIGCHLD.
  void run();

  const std::string& socket() const { return socket_; }

 private:
  // A program of which an application measures times. `sha256`: its fingerprint, if it is on another node.
  struct MeasuredProgram {
    std::string program, mpi, sha256;
  };

  Leader(const config::DaemonSettings& settings, const coordinator::CoordinatorSettings& prepared,
         const std::string& directory);

  // The parts of start(). Only a trace at the default place may fail: the daemon then runs without one.
  Status listen();
  Status open_trace(const std::string& directory);
  Status take_agents(std::unique_ptr<link::Tls> tls);
  Status open_metrics();
  // Tells the coordinator at which place of the list of leaders this one stands. `told_by`: node of the agent; "": its
  // own list.
  void take_place(std::int64_t place, const std::string& told_by);

  // Processes one event: coordinator, answers, own commands, trace. LIST and EXPLAIN are answered here and not
  // traced.
  void handle(event::Event&& event);
  // Carries out a command without addressee, which is for the daemon itself: processes, decisions, and log lines.
  void carry_out(const event::Body& command);
  void take_ended_processes();
  // Passes the failures of started processes to the coordinator, after the event that caused them is recorded.
  void tell_failed_processes();
  // Starts processes of an application on the node of the member that asked. Returns why it cannot; "" if it does.
  std::string start_processes(const event::StartProcesses& start);
  // Keeps in mind which members are foreign (bus::Agent::is_foreign), until they leave.
  bool is_foreign(const event::Event& event);
  // Watches the process of an I/O server that registers, and notes that its connection ends.
  void follow_server(const event::Event& event);
  // Reports the cores of a node, or that it has gone, to the coordinator.
  void tell_cores(const std::string& node, std::int64_t cores);
  void kill_server(const event::HungIoServer& hung);
  // Passes the ends of I/O servers to the coordinator.
  void tell_ended_servers();
  // Answers LIST once the trace has everything before it, or after a limit.
  void take_list(MemberId from, Time now);
  void answer_lists(Time now);
  void tell_ended_server(const event::ServerEnded& ended);

  // These concern other nodes (leader_nodes.cpp).
  void take_joined_node(const link::Introduction& node);
  void take_report(const link::Introduction& node, event::Body&& body);
  // Answer START_SERVER and STOP_SERVER, here or by the agent of the node.
  void start_server(const event::Event& asked);
  void stop_server(const event::Event& asked);
  // Returns why the node cannot start the server; "" if it does.
  std::string start_server_on(event::StartServer asked);
  void take_started_servers();
  std::string free_server_name();
  // Publishes what has become of a server that was to be started on the node. It changes nothing in the coordinator.
  void publish_of(const std::string& node, event::Body body);
  // Looks up a program of another node, whose fingerprint has come.
  void take_fingerprint(const event::ProgramFingerprint& told);
  void answer_list(MemberId to, Time now);
  // Takes note of what the trace's thread tells: it has written, or can no longer write.
  void follow_trace();
  // Reports once that the trace cannot keep up.
  void report_gap();
  void answer_explain(MemberId to, const event::Explain& asked);
  event::Daemon describe_daemon(Time now) const;
  // Has an application looked up in the profile store when it arrives, and stores what was measured when it leaves.
  void look_up(const event::Event& hello, const std::vector<coordinator::Command>& commands, bool foreign);
  void take_profiles();
  // Passes found points to the coordinator.
  void tell_profiles();
  void remember(const MeasuredProgram& measured, const std::vector<coordinator::Command>& commands);
  // Publishes and traces an event and its commands.
  void record(const event::Event& event, const std::vector<coordinator::Command>& commands);
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
  std::unique_ptr<link::NodeAgents> node_agents_;  // nullptr: this daemon is for its own node
  // A LIST that waits for the trace.
  struct PendingList {
    MemberId from;
    std::uint64_t flushed;  // trace::Recorder::flush
    Time until;
  };
  std::unique_ptr<trace::Recorder> trace_;  // nullptr: none is written
  std::string trace_path_;
  std::string trace_error_;
  std::string left_address_;  // for I/O servers of this node
  std::deque<PendingList> lists_;
  ProcessStarter starter_;
  ServerProcesses servers_;
  ServersElsewhere elsewhere_;
  ServerStarter started_servers_;
  std::unordered_map<std::string, std::pair<std::string, Time>> starting_;  // servers, with node and start, not joined
  std::unordered_map<AppId, std::string> fingerprints_;                     // of programs of other nodes
  Decisions decisions_;
  std::unique_ptr<MetricsEndpoint> metrics_;  // nullptr: off
  ProfileWorker profiles_;
  std::vector<event::Profile> found_profiles_;          // found, but not passed to the coordinator yet
  std::string profiles_wrong_;                          // last problem of the store in the log, to log each only once
  std::vector<event::ProcessFailed> failed_processes_;  // not passed to the coordinator yet
  std::unordered_set<MemberId> foreign_;
  DaemonEnd ending_;
  Time last_member_;  // when a member was last connected
};

}  // namespace hocket::daemon
