#include "bus/local_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace hocket::bus {
namespace {

// Returns the value of an environment variable; an empty one counts as unset.
std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{"the socket's path '" + path + "' must have 1 to " + std::to_string(sizeof address.sun_path - 1) +
                 " bytes; set HOCKET_DIR to a shorter one"};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Checks the owner of the socket's directory, since the owner can replace the socket.
Status check_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) {
    return Error{"no hocketd listens at " + path + ": " + error_text(errno) + "; start one with 'hocket daemon start'"};
  }
  if (is_trusted(status.st_uid)) return success();
  return Error{"the directory of the socket " + path + " belongs to user " + std::to_string(status.st_uid) +
               ", neither to user " + std::to_string(geteuid()) + " nor to root; set HOCKET_DIR to your own"};
}

Result<Fd> new_socket(int flags) {
  Fd fd{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)};
  if (!fd) return Error{"cannot make a socket: " + error_text(errno)};
  return fd;
}

}  // namespace

std::string runtime_directory() {
  if (const auto chosen = environment("HOCKET_DIR")) return *chosen;
  if (const auto session = environment("XDG_RUNTIME_DIR")) return *session + "/hocket";
  return "/tmp/hocket-" + std::to_string(getuid());
}

std::string socket_in(const std::string& directory) { return directory + "/hocketd.sock"; }

std::string default_socket() {
  const auto chosen = environment("HOCKET_SOCKET");
  return chosen ? *chosen : socket_in(runtime_directory());
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
  if (!is_trusted(peer.value().user)) {
    return Error{"the process that listens at " + path + " belongs to user " + std::to_string(peer.value().user) +
                 ", neither to user " + std::to_string(geteuid()) + " nor to root; it is not used"};
  }
  return fd;
}

Result<Fd> listen_at(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return address.error();
  auto fd = new_socket(SOCK_NONBLOCK);
  if (!fd) return fd.error();
  unlink(path.c_str());
  // The file must never be accessible to others, not even between bind() and a chmod().
  const mode_t mask = umask(0177);
  const int bound = bind(fd.value().get(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un));
  const int error = errno;
  umask(mask);
  if (bound != 0) return Error{"cannot make the socket " + path + ": " + error_text(error)};
  constexpr int backlog = 1024;
  if (listen(fd.value().get(), backlog) != 0) return Error{"cannot listen at " + path + ": " + error_text(errno)};
  return fd;
}

}  // namespace hocket::bus
