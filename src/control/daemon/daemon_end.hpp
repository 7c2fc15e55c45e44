// The ways in which a daemon is told to end: SIGTERM, SIGINT and SIGHUP, and the removal of its socket. A daemon that
// nobody can reach must not keep the lead: another one may lead in a new directory of the same name.
//
// Not thread-safe; nothing throws. The caller must have blocked the signals, and SIGCHLD.
#pragma once

#include <functional>
#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace hocket::daemon {

class DaemonEnd {
 public:
  using Call = std::function<void()>;
  // Has the loop of the daemon call the function whenever the descriptor is readable.
  using WatchDescriptor = std::function<void(int fd, Call ready)>;

  // `members`: their number, for the log. `child_ended` is called at SIGCHLD.
  Status catch_signals(const WatchDescriptor& watch, std::function<std::size_t()> members, Call child_ended);
  // `is_reachable`: the socket's path still leads to this daemon, which listens there already.
  void watch_socket(const std::string& socket, const WatchDescriptor& watch, std::function<bool()> is_reachable);
  bool is_over() const { return is_over_; }
  void end() { is_over_ = true; }

 private:
  std::function<bool()> is_reachable_;
  std::function<std::size_t()> members_;
  Fd signals_;
  Fd socket_changes_;
  bool is_over_ = false;
};

}  // namespace hocket::daemon
