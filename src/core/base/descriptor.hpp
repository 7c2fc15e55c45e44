// The shells share these parts of the operating system: the owner of a descriptor, the peer of a local socket, and
// the text of an error. Pure folders must not include this file. Nothing throws; thread-safe.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.hpp"

namespace hocket {

// A file descriptor that its owner closes on destruction. Move-only; assignment swaps the two descriptors.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  // Closes the descriptor now. Returns the number of errno; 0: it was closed without an error. A file system may say
  // only then that it refuses what was written.
  int close_now() { return fd_ < 0 || close(release()) == 0 || errno == EINTR ? 0 : errno; }
  // Gives the descriptor up without closing it.
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Returns the text of an `errno` value: "No such file or directory" for ENOENT, and so on.
inline std::string error_text(int error) { return std::generic_category().message(error); }

struct Peer {
  uid_t user = 0;
  pid_t process = 0;  // that connected; 0 if invisible (another PID namespace)
};
// Returns the peer of a Unix socket according to SO_PEERCRED, or an error if the kernel cannot determine it.
inline Result<Peer> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Error{"cannot identify the other end of a socket: " + error_text(errno)};
  }
  return Peer{peer.uid, peer.pid};
}
// True for the user of this process and for root.
inline bool is_trusted(uid_t user) { return user == geteuid() || user == 0; }

}  // namespace hocket
