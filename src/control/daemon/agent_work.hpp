// The work of a node's agent for the leader: it watches, ends and starts I/O servers, starts processes that
// join applications, and computes fingerprints of programs. Not thread-safe, but for a thread of its own that reads
// programs. Nothing throws.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "daemon/process_starter.hpp"
#include "daemon/profile_worker.hpp"
#include "daemon/server_processes.hpp"
#include "daemon/server_starter.hpp"
#include "link/node_duties.hpp"

namespace hocket::daemon {

class AgentWork final : public link::NodeDuties {
 public:
  // Reports an event to the leader; returns false if there is none.
  using Report = std::function<bool(const event::Body&)>;
  using Watch = std::function<void(int fd, std::function<void()> ready)>;

  // `address`: by which other nodes reach the servers of this one; "": that of the link.
  AgentWork(const std::string& directory, std::string address, const std::string& target_names, Report report);

  // Has what ends or is computed noticed. Call once, before the agent runs.
  void watch(const Watch& watch);
  // Collects ended processes. Call it after SIGCHLD.
  void reap();

  void linked(const std::string& address) override;
  void unlinked() override;
  void carry_out(std::uint64_t member, const event::Body& order) override;
  void left(std::uint64_t member, bool closed) override;

 private:
  void watch_server(MemberId member, const event::Server& server);
  // Returns true if this run of the server has surely ended: it has lost the lock of its name.
  bool has_ended(const event::Server& server) const;
  void start_server(const event::StartServer& asked);
  void tell_started();
  void stop_server(const event::StopServer& asked);
  void tell_ended();
  void tell_fingerprints();
  // Reports the end of a server. Without a leader, it is kept for the next one.
  void tell_end(event::ServerEnded ended);

  std::string directory_;
  std::string address_;
  Report report_;
  ServerProcesses processes_;
  ServerStarter servers_;
  ProcessStarter starter_;
  ProfileWorker programs_;
  std::deque<event::ServerEnded> untold_;
};

}  // namespace hocket::daemon
