// The end of a connection that a client has given up while the server may still carry out writes of it.
//
// The client sends nothing more (shutdown), by which the server knows that it must drop what it has not begun. The
// server closes its end when nothing of this client is under way any more, and the kernel closes it when the process
// has ended: the threads of a process share its descriptors, so the last thread that leaves the kernel closes them,
// also after a write that could not be interrupted. In both cases nothing of this client is written later.
//
// Nothing throws or blocks; one thread at a time.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/kept_descriptor.hpp"

namespace hocket::transport {

class Parting {
 public:
  // Nothing is owed.
  Parting() = default;
  // Gives up the connection of this socket. Without a socket nothing will show that the server is done.
  explicit Parting(KeptFd socket) : socket_(std::move(socket)), is_over_(false) {
    if (socket_ && socket_.is_ours()) shutdown(socket_.get(), SHUT_WR);
  }

  // True if nothing that was sent over the connection will be written any more.
  bool is_over() {
    std::array<std::byte, 16 << 10> dropped;
    while (!is_over_ && socket_ && socket_.is_ours()) {
      const ssize_t n = recv(socket_.get(), dropped.data(), dropped.size(), MSG_DONTWAIT);
      if (n > 0 || (n < 0 && errno == EINTR)) continue;
      is_over_ = n == 0 || errno == ECONNRESET || errno == EPIPE;
      // After another error, of the network, the kernel says that the other end has closed, which nobody knows.
      if (!is_over_ && errno != EAGAIN) socket_ = KeptFd{};
      break;
    }
    if (is_over_) socket_ = KeptFd{};
    return is_over_;
  }

 private:
  KeptFd socket_;
  bool is_over_ = true;
};

}  // namespace hocket::transport
