#include "malleable/door.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hocket::runtime {
namespace {

constexpr char word = 'c';  // the only message, in both directions: connect
constexpr Duration connect_limit = std::chrono::seconds{5};

// Waits until `fd` has data, a connection or an end of stream. Returns false after the time limit.
bool readable_within(int fd, Duration limit) {
  pollfd waited{fd, POLLIN, 0};
  int count = 0;
  do {
    count = poll(&waited, 1, static_cast<int>(to_s(limit) * 1000));
  } while (count < 0 && errno == EINTR);
  return count > 0;
}

bool say(int fd) { return send(fd, &word, 1, MSG_NOSIGNAL) == 1; }

// Reads one message. Returns false at the end of the stream, which means that the other side has gone.
bool hear(int fd) {
  char heard = 0;
  ssize_t count = 0;
  do {
    count = recv(fd, &heard, 1, 0);
  } while (count < 0 && errno == EINTR);
  return count == 1 && heard == word;
}

}  // namespace

Result<Door> Door::open(const std::string& hocketd_socket) {
  const std::string directory = hocketd_socket.substr(0, hocketd_socket.rfind('/') + 1);
  std::string path = directory + "join-" + std::to_string(getpid()) + ".sock";
  auto socket = bus::listen_at(path);
  if (!socket) return socket.error();
  return Door{std::move(path), std::move(socket).value()};
}

// Swaps, so that the destructor of `other` removes the old socket.
Door& Door::operator=(Door&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(socket_, other.socket_);
  std::swap(last_, other.last_);
  return *this;
}

Door::~Door() {
  if (socket_) unlink(path_.c_str());
}

// The answer proves that the process still lives; only then does rank 0 call MPI_Comm_accept, which has no time limit.
Status Door::let_in(Duration limit) {
  if (!socket_.is_ours() || !readable_within(socket_.get(), limit)) return Error{"a joining process no longer waits"};
  last_ = KeptFd{accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (!last_) return Error{"a joining process no longer waits: " + bus::error_text(errno)};
  const auto peer = bus::peer_of(last_.get());
  if (!peer || !bus::is_trusted(peer.value().user))
    return Error{"a process of another user connected instead of a joining one"};
  if (!say(last_.get()) || !readable_within(last_.get(), limit) || !hear(last_.get()))
    return Error{"a joining process ended before it had joined"};
  return success();
}

Result<Waiter> Waiter::at(const std::string& path) {
  auto socket = bus::connect_to(path, connect_limit);
  if (!socket) return socket.error();
  return Waiter{std::move(socket).value()};
}

// Waits practically without a limit: the kernel closes the stream if rank 0 dies.
bool Waiter::wait() { return readable_within(socket_.get(), from_s(1e6)) && hear(socket_.get()) && say(socket_.get()); }

}  // namespace hocket::runtime
