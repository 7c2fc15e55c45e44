#include "daemon/daemon_end.hpp"

#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace hocket::daemon {

Status DaemonEnd::catch_signals(const WatchDescriptor& watch, std::function<std::size_t()> members, Call child_ended) {
  members_ = std::move(members);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  // signalfd merges signals into the event loop, so no handler interrupts a decision.
  signals_ = Fd{signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!signals_) return Error{"cannot wait for signals: " + error_text(errno)};
  watch(signals_.get(), [this, child_ended = std::move(child_ended)] {
    signalfd_siginfo caught{};
    if (read(signals_.get(), &caught, sizeof caught) != sizeof caught) return;
    if (caught.ssi_signo == SIGCHLD) return child_ended();
    spdlog::info("stopping on signal {}; {} members continue uncoordinated", caught.ssi_signo, members_());
    is_over_ = true;
  });
  return success();
}

void DaemonEnd::watch_socket(const std::string& socket, const WatchDescriptor& watch,
                             std::function<bool()> is_reachable) {
  is_reachable_ = std::move(is_reachable);
  socket_changes_ = Fd{inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
  if (!socket_changes_) return;  // the user has too many inotify instances: an operator must end the daemon then
  inotify_add_watch(socket_changes_.get(), socket.c_str(), IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
  watch(socket_changes_.get(), [this, socket] {
    // The events themselves do not matter; they only say when to check.
    std::array<char, 4096> ignored{};
    while (read(socket_changes_.get(), ignored.data(), ignored.size()) > 0) {
    }
    if (is_reachable_()) return;
    spdlog::error("ending: {} was removed, so nothing can connect any more; {} members continue uncoordinated", socket,
                  members_());
    is_over_ = true;
  });
}

}  // namespace hocket::daemon
