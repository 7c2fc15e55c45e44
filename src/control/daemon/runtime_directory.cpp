#include "daemon/runtime_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace hocket::daemon {
namespace {

// Returns the process id that the leader has written, or "" if it has written none.
std::string pid_in(const bus::Fd& lock) {
  std::array<char, 32> text{};
  const ssize_t n = pread(lock.get(), text.data(), text.size(), 0);
  std::string pid{text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  return pid.substr(0, pid.find('\n'));
}

// Locks the file. A leader without a socket is about to create it or to end, so this waits up to 5 s for either.
bool lock_within_a_moment(const bus::Fd& lock, const std::string& socket) {
  constexpr useconds_t step_us = 10'000;
  for (int step = 0; flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++step) {
    if (errno != EWOULDBLOCK || step == 500 || access(socket.c_str(), F_OK) == 0) return false;
    usleep(step_us);
  }
  return true;
}

}  // namespace

Result<bus::Fd> take_lead(const std::string& directory) {
  const std::string path = directory + "/hocketd.lock";
  bus::Fd lock{open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!lock) return Error{"cannot open the lock " + path + ": " + bus::error_text(errno)};
  if (!lock_within_a_moment(lock, bus::socket_in(directory))) {
    if (errno != EWOULDBLOCK) return Error{"cannot lock " + path + ": " + bus::error_text(errno)};
    return Error{
        fmt::format("another hocketd (pid {}) leads in {}; stop it first, or name another directory with --dir",
                    pid_in(lock), directory)};
  }
  // The daemon leads without its pid in the file if the disk is full: the lock holds all the same.
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(lock.get(), 0) == 0) (void)!pwrite(lock.get(), pid.data(), pid.size(), 0);
  return lock;
}

void leave_target_names(const std::string& directory, const std::string& names, bool for_all_users) {
  const std::string path = directory + "/target-names";
  unlink(path.c_str());
  if (names.empty()) return;
  const bus::Fd file{open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file) return;
  (void)!write(file.get(), names.data(), names.size());
  if (for_all_users) fchmod(file.get(), 0644);
}

}  // namespace hocket::daemon
