#include "bus/local_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/unix_address.hpp"

namespace hocket::bus {
namespace {

// Returns the value of an environment variable; an empty one counts as unset.
std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<sockaddr_un> address_of(const std::string& path) {
  auto address = unix_address(path);
  if (!address) return Error{address.error().text + "; set HOCKET_DIR to a shorter one"};
  return address;
}

// True if that user may listen at the path: this one, root, or the owner of a system's daemon at its place.
bool may_listen(uid_t user, const std::string& path) { return is_trusted(user) || system_owner(path) == user; }

// Returns the directory of a system's daemon, if the path is that of a socket in one.
std::optional<std::string> system_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || path != socket_in(path.substr(0, slash))) return std::nullopt;
  const std::string directory = path.substr(0, slash);
  if (!directory.starts_with(system_directory)) return std::nullopt;
  const std::string name = directory.substr(std::strlen(system_directory));
  if (name.empty() || (name.front() == '-' && name.find('/') == std::string::npos)) return directory;
  return std::nullopt;
}

// Checks the owner of the socket's directory, since the owner can replace the socket.
Status check_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) {
    return Error{"no hocketd listens at " + path + ": " + error_text(errno) + "; start one with 'hocket daemon start'"};
  }
  if (may_listen(status.st_uid, path)) return success();
  return Error{"the directory of the socket " + path + " belongs to user " + std::to_string(status.st_uid) +
               ", neither to user " + std::to_string(geteuid()) + " nor to root; set HOCKET_DIR to your own"};
}

Result<Fd> new_socket(int flags) {
  Fd fd{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)};
  if (!fd) return Error{"cannot make a socket: " + error_text(errno)};
  return fd;
}

// True if a process listens there. The socket of a daemon that was killed stays.
bool is_answered(const std::string& path) {
  const auto address = address_of(path);
  const auto fd = new_socket(SOCK_NONBLOCK);
  if (!address || !fd) return false;
  return connect(fd.value().get(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)) == 0 ||
         errno == EAGAIN;
}

// Returns the number of the Slurm job around this process; "" if there is none.
std::string slurm_job() {
  std::string job = environment("SLURM_JOB_ID").value_or("");
  return job.find_first_not_of("0123456789") == std::string::npos ? job : "";
}

}  // namespace

std::string runtime_directory() {
  if (const auto chosen = environment("HOCKET_DIR")) return *chosen;
  const std::string in_tmp = "/tmp/hocket-" + std::to_string(getuid());
  const auto session = environment("XDG_RUNTIME_DIR");
  std::string own = session ? *session + "/hocket" : in_tmp;
  const std::string job = slurm_job();
  return job.empty() || is_answered(socket_in(own)) ? own : in_tmp + "-job" + job;
}

std::string socket_in(const std::string& directory) { return directory + "/hocketd.sock"; }

std::string default_socket() {
  if (const auto chosen = environment("HOCKET_SOCKET")) return *chosen;
  const std::string of_all = socket_in(system_directory);
  if (!environment("HOCKET_DIR") && system_owner(of_all) && file_at(of_all)) return of_all;
  return socket_in(runtime_directory());
}

std::optional<uid_t> system_owner(const std::string& socket) {
  constexpr mode_t others_write = S_IWGRP | S_IWOTH;
  const auto directory = system_directory_of(socket);
  struct stat above {};
  struct stat status {};
  if (!directory) return std::nullopt;
  if (lstat("/run", &above) != 0 || above.st_uid != 0 || (above.st_mode & others_write) != 0) return std::nullopt;
  if (lstat(directory->c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || (status.st_mode & others_write) != 0)
    return std::nullopt;
  return status.st_uid;
}

Result<Fd> connect_to(const std::string& path, Duration timeout) {
  const auto address = address_of(path);
  if (!address) return address.error();
  if (const Status ours = check_directory_of(path); !ours) return ours.error();
  auto fd = new_socket(0);
  if (!fd) return fd.error();
  // connect() waits for room in the listener's queue, within the socket's time limit for sends.
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
  const timeval limit{microseconds / 1'000'000, microseconds % 1'000'000 + (microseconds <= 0 ? 1 : 0)};
  setsockopt(fd.value().get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  int failed = 0;
  do {
    failed = connect(fd.value().get(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un));
  } while (failed != 0 && errno == EINTR);
  if (failed != 0) {
    return Error{"no hocketd listens at " + path + ": " + error_text(errno) + "; start one with 'hocket daemon start'"};
  }
  const auto peer = peer_of(fd.value().get());
  if (!peer) return peer.error();
  if (!may_listen(peer.value().user, path)) {
    return Error{"the process that listens at " + path + " belongs to user " + std::to_string(peer.value().user) +
                 ", neither to user " + std::to_string(geteuid()) + " nor to root; it is not used"};
  }
  return fd;
}

std::optional<std::pair<dev_t, ino_t>> file_at(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return std::nullopt;
  return std::pair{status.st_dev, status.st_ino};
}

Result<Fd> listen_at(const std::string& path, bool for_all_users) {
  const auto address = address_of(path);
  if (!address) return address.error();
  auto fd = new_socket(SOCK_NONBLOCK);
  if (!fd) return fd.error();
  unlink(path.c_str());
  // The file must never be accessible to those who may not connect, not even between bind() and a chmod().
  const mode_t mask = umask(for_all_users ? 0111 : 0177);
  const int bound = bind(fd.value().get(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un));
  const int error = errno;
  umask(mask);
  if (bound != 0) return Error{"cannot make the socket " + path + ": " + error_text(error)};
  constexpr int backlog = 1024;
  if (listen(fd.value().get(), backlog) != 0) return Error{"cannot listen at " + path + ": " + error_text(errno)};
  return fd;
}

}  // namespace hocket::bus
