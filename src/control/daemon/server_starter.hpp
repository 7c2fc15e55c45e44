// Starts I/O servers on this node for START_SERVER. They end in order when this daemon does, however it ends. Nothing
// waits for a file system (launches.hpp). Not thread-safe; nothing throws. Call `reap` after SIGCHLD.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "daemon/launches.hpp"
#include "event/event.hpp"
#include "link/later.hpp"

namespace hocket::daemon {

class ServerStarter {
 public:
  static constexpr std::size_t most = 256;  // servers at a time
  static constexpr Duration exec_limit = std::chrono::seconds{10};

  // Servers get this runtime directory, and the operator's names of targets. Their program is `hocket-server` beside
  // that of this process.
  ServerStarter(std::string runtime_directory, std::string target_names)
      : directory_(std::move(runtime_directory)), target_names_(std::move(target_names)), launches_(exec_limit) {}

  // Begins to start a server under the name in `asked`; the error says why it cannot.
  Status start(const event::StartServer& asked);
  // Returns a descriptor that is readable when there is something to `collect`.
  int descriptor() const { return launches_.descriptor(); }
  // Continues what was begun. Returns SERVER_STARTED for each server that runs its program, and SERVER_FAILED for each
  // that does not, or has ended before it joined.
  std::vector<event::Body> collect();
  // Notes that the server has joined: its end is not a failed start any more.
  void joined(const std::string& server, std::int64_t pid);
  // Ends a server of this name that was started here, in order (SIGTERM). Returns false if there is none.
  bool stop(const std::string& server);
  // Collects ended processes. `collect` returns those that have not joined, with the last line that they have written.
  void reap();

 private:
  struct StartedServer {
    pid_t pid = 0;
    std::string server;
    std::string node;  // as START_SERVER said
    std::string token;
    bool has_joined = false;
  };

  std::string directory_;
  std::string target_names_;
  Launches launches_;
  std::map<std::uint64_t, StartedServer> starting_;        // by the number of the launch; without their process
  std::vector<link::Later<event::ServerFailed>> failing_;  // whose logs are being read
  std::vector<event::Body> stopped_;                       // before they ran; for `collect`
  std::vector<StartedServer> servers_;
};

}  // namespace hocket::daemon
