// Unix sockets of one user: where they are, who may use them. Shared by client and node agent.
//
// Nothing throws. Thread-safe but for the environment, which is read.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/result.hpp"
#include "base/time.hpp"

namespace hocket::bus {

// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// $HOCKET_DIR, else $XDG_RUNTIME_DIR/hocket, else /tmp/hocket-<uid>.
std::string runtime_directory();
// The daemon's socket in a runtime directory.
std::string socket_in(const std::string& directory);
// $HOCKET_SOCKET, else the socket in the runtime directory.
std::string default_socket();

// Connects to the socket at `path`, within `timeout`. Fails where its directory or the process that listens belongs to
// neither this user nor root.
Result<Fd> connect_to(const std::string& path, Duration timeout);

// Listens at `path` with mode 0600, non-blocking. What was there is removed: the caller holds the directory's lock.
Result<Fd> listen_at(const std::string& path);

struct Peer {
  uid_t user = 0;
  pid_t process = 0;  // that connected; 0 where it is out of sight (another PID namespace)
};
// Who is at the other end, by SO_PEERCRED.
Result<Peer> peer_of(int socket);
// This user or root.
bool is_trusted(uid_t user);

// "No such file or directory" for ENOENT, and so on.
std::string error_text(int error);

}  // namespace hocket::bus
