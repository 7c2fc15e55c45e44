#include "forward/local_caller.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/unix_address.hpp"
#include "forward/forward_connection.hpp"

namespace hocket::forward {

Result<std::unique_ptr<LocalCaller>> LocalCaller::connect(const std::string& path) {
  std::unique_ptr<LocalCaller> caller{new LocalCaller};
  caller->segment_file_ = Fd{memfd_create("hocket-relayed", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  const int memory = caller->segment_file_.get();
  if (memory < 0 || ftruncate(memory, forward_most_bytes) != 0 ||
      fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 || !caller->segment_.map(memory))
    return Error{"no memory for relayed calls: " + error_text(errno)};
  const auto address = unix_address(path);
  if (!address) return address.error();
  caller->socket_ = Fd{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  const int own = caller->socket_.get();
  forward_hello hello{};
  hello.version = forward_version;
  forward_welcome welcome{};
  if (own < 0 || ::connect(own, reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)) != 0 ||
      !send_to(own, hello, memory) || recv(own, &welcome, sizeof welcome, 0) != static_cast<ssize_t>(sizeof welcome))
    return Error{"cannot reach the service of forwarded calls: " + error_text(errno)};
  return caller;
}

std::optional<forward_answer> LocalCaller::call(const forward_request& request, Fd file, int caller,
                                                const std::function<void()>& waits) {
  if (!send_to(socket_.get(), request, file.get())) return std::nullopt;
  // The service's copy is the last one, so that an error of its close becomes the call's.
  file = Fd{};
  constexpr int wait_ms = static_cast<int>(shows_life_every / std::chrono::milliseconds{1});
  std::array<pollfd, 2> both{{{socket_.get(), POLLIN, 0}, {caller, POLLRDHUP, 0}}};
  while (true) {
    const int ready = poll(both.data(), both.size(), wait_ms);
    if (ready == 0) waits();
    if (ready <= 0) continue;
    if (both[0].revents != 0) break;
    shutdown(socket_.get(), SHUT_WR);
    both[1].fd = -1;
  }
  forward_answer answer{};
  if (recv(socket_.get(), &answer, sizeof answer, 0) != static_cast<ssize_t>(sizeof answer)) return std::nullopt;
  return answer;
}

void LocalCaller::shrink() const {
  fallocate(segment_file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kept_bytes,
            forward_most_bytes - kept_bytes);
}

}  // namespace hocket::forward
