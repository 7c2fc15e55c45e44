#include "daemon/server_processes.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <string_view>
#include <utility>

namespace hocket::daemon {
namespace {

// glibc has wrappers from 2.36 on only.
Fd open_process(std::int64_t pid) { return Fd{static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0))}; }

bool has_ended(const Fd& process) {
  pollfd end{process.get(), POLLIN, 0};
  return poll(&end, 1, 0) == 1;
}

// Returns the file name of the program that a process runs; "" if it cannot be read. An update may have replaced the
// file.
std::string program_of(std::int64_t pid) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = readlink(fmt::format("/proc/{}/exe", pid).c_str(), target.data(), target.size());
  std::string_view path{target.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
  constexpr std::string_view replaced = " (deleted)";
  if (path.ends_with(replaced)) path.remove_suffix(replaced.size());
  return std::string{path.substr(path.rfind('/') + 1)};
}

}  // namespace

ServerProcesses::ServerProcesses() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Status ServerProcesses::watch(MemberId member, const event::Server& server) {
  const std::int64_t pid = server.pid;
  for (const auto& [key, one] : watched_) {
    const bool is_it = one.server.server == server.server && one.server.pid == pid;
    if (is_it && one.server.instance == server.instance) return success();  // it has registered again
  }
  const event::ServerEnded ended{server.server, pid, server.instance};
  if (member) unwatched_[member] = ended;
  if (pid <= 0) return Error{"its process is in another PID namespace"};
  Watched one{ended, open_process(pid)};
  if (!one.process) return Error{fmt::format("pidfd_open of process {}: {}", pid, error_text(errno))};
  // The process still exists after the look, so it is the one that the program's name belongs to.
  const std::string program = program_of(pid);
  if (program != "hocket-server" || has_ended(one.process))
    return Error{fmt::format("process {} runs '{}', not hocket-server", pid, program)};
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = ++last_;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, one.process.get(), &wanted) != 0)
    return Error{"cannot wait for its process: " + error_text(errno)};
  unwatched_.erase(member);
  watched_.emplace(last_, std::move(one));
  return success();
}

// A process that has ended closed its connection after all of its threads had left the kernel: they share the table of
// descriptors, and the last one closes it. So this is as good as a pidfd, unless a living process closes the
// connection.
void ServerProcesses::left(MemberId member, bool closed) {
  const auto found = unwatched_.find(member);
  if (found == unwatched_.end()) return;
  if (closed) ended_.push_back(std::move(found->second));
  unwatched_.erase(found);
}

Status ServerProcesses::kill(const std::string& server, std::int64_t pid) const {
  for (const auto& [key, one] : watched_)
    if (one.server.server == server && one.server.pid == pid) return signal(one, SIGKILL);
  return Error{fmt::format("process {} is not watched", pid)};
}

Status ServerProcesses::end(const std::string& server, const std::string& instance) const {
  for (const auto& [key, one] : watched_)
    if (one.server.server == server && (instance.empty() || one.server.instance == instance))
      return signal(one, SIGTERM);
  return Error{"its process is not watched: end it on its node"};
}

Status ServerProcesses::signal(const Watched& one, int number) {
  if (syscall(SYS_pidfd_send_signal, one.process.get(), number, nullptr, 0) == 0) return success();
  return Error{
      fmt::format("cannot {} process {}: {}", number == SIGKILL ? "kill" : "end", one.server.pid, error_text(errno))};
}

void ServerProcesses::collect() {
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto found = watched_.find(ready.at(static_cast<std::size_t>(i)).data.u64);
    if (found == watched_.end()) continue;
    ended_.push_back(std::move(found->second.server));
    watched_.erase(found);
  }
}

std::vector<event::ServerEnded> ServerProcesses::take_ended() { return std::exchange(ended_, {}); }

}  // namespace hocket::daemon
