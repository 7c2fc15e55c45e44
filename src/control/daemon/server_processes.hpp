// The processes of this node's I/O servers: kills a hung one, and notices the end of each.
//
// A server that hangs may continue later and carry out writes that its clients have replaced meanwhile. So nothing may
// be written around it before its process has ended. The kernel confirms that by a pidfd, which is readable when all
// threads of the process have ended, even one that was inside a write. SIGKILL works on a stopped process too.
//
// Only processes that run a program called hocket-server are watched. Not thread-safe; nothing throws.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/descriptor.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

class ServerProcesses {
 public:
  ServerProcesses();

  // Returns a descriptor that is readable when a watched process has ended: call `collect` then.
  int descriptor() const { return epoll_.get(); }

  // Watches the process of a server that has registered. Its pid is the one that the kernel gives for its connection.
  // The error says why it cannot be watched; then the end of its connection counts as its end.
  Status watch(MemberId member, const event::Server& server);
  // Notes that the member's connection has ended. `closed`: by the process itself, which includes its end.
  void left(MemberId member, bool closed);
  // Kills the process of a server. Its end is noticed later.
  Status kill(const std::string& server, std::int64_t pid) const;

  // Ends this run of a server in order (SIGTERM); "" for `instance`: any run. The error says why it cannot.
  Status end(const std::string& server, const std::string& instance) const;

  // Notices which watched processes have ended.
  void collect();
  // Returns the ends noticed since the last call.
  std::vector<event::ServerEnded> take_ended();

 private:
  struct Watched {
    event::ServerEnded server;  // as its end will be reported
    Fd process;                 // pidfd
  };

  static Status signal(const Watched& one, int number);

  Fd epoll_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Watched> watched_;                    // by the key of epoll
  std::unordered_map<MemberId, event::ServerEnded> unwatched_;  // servers whose process cannot be watched
  std::vector<event::ServerEnded> ended_;
};

}  // namespace hocket::daemon
