// The leader: gives the coordinator what happens on the node, carries out its commands, and writes both down.
//
// One thread, which `run` takes. The order for each event: decide, answer, then publish and trace, so that nobody waits
// for a grant because of those who watch.
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
#include "trace/writer.hpp"

namespace hocket::daemon {

class Leader {
 public:
  // Listens in `directory`, which is prepared and locked by the caller.
  static Result<std::unique_ptr<Leader>> start(config::Settings settings, const std::string& directory);

  // Until SIGTERM, SIGINT or SIGHUP, which must be blocked (and SIGCHLD), or until nobody has been connected for as
  // long as the settings say, or until somebody has removed the socket.
  void run();

  const std::string& socket() const { return socket_; }

 private:
  Leader(const config::Settings& settings, const coordinator::Settings& prepared, const std::string& directory);

  Status listen();
  Status open_trace(const std::string& directory);
  Status catch_signals();
  void watch_socket();

  void handle(event::Event&& event);
  // A command to no member: the leader's own business.
  void carry_out(const event::Body& command);
  void take_ended_processes();
  void tell_failed_processes();
  void answer_list(MemberId to, Time now);
  void answer_explain(MemberId to, const event::Explain& asked);
  event::Daemon describe_daemon(Time now) const;
  void feed_profiles(const event::Event& hello, const std::vector<coordinator::Command>& commands);
  void tell_profiles();
  void remember(const std::string& program, const std::string& mpi, const std::vector<coordinator::Command>& commands);
  void record(event::Event&& event, const std::vector<coordinator::Command>& commands);
  void tick_if_due(Time now);
  // Until when `run` may sleep; nothing: without end.
  std::optional<Duration> longest_sleep(Time now) const;
  bool has_been_idle(Time now);

  config::Settings settings_;
  std::string socket_;
  std::string node_;
  Time started_;
  coordinator::Coordinator coordinator_;
  std::unique_ptr<bus::Agent> agent_;
  std::optional<trace::Writer> trace_;
  std::string trace_path_;
  std::string trace_error_;
  ProcessStarter starter_;
  Decisions decisions_;
  ProfileStore profiles_;
  std::vector<event::Profile> found_profiles_;          // not told to the coordinator yet
  std::string profiles_wrong_;                          // what the log said of the store last
  std::vector<event::ProcessFailed> failed_processes_;  // not told to the coordinator yet
  bus::Fd signals_;
  bus::Fd socket_changes_;
  bool stopped_ = false;
  Time last_member_;  // when one was connected last
};

}  // namespace hocket::daemon
