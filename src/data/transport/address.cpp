#include "transport/address.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/node_number.hpp"
#include "base/unix_address.hpp"
#include "transport/proof.hpp"

namespace hocket::transport {
namespace {

constexpr int socket_buffer_bytes = 1 << 20;

// Deleter for getaddrinfo's results.
struct Freed {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Resolved = std::unique_ptr<addrinfo, Freed>;

Result<Resolved> resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &list);
  if (failed != 0) return Error{"cannot resolve " + address.host + ": " + gai_strerror(failed)};
  return Resolved{list};
}

// Connects, and returns an error of errno or 0. It blocks until the deadline at most.
int connect_within(int socket, const sockaddr* address, socklen_t size, Time deadline) {
  while (connect(socket, address, size) != 0) {
    if (errno == EAGAIN) {  // a Unix listener with a full queue: no event reports free space, so retry
      if (node_now() >= deadline) return ETIMEDOUT;
      constexpr int step_ms = 1;
      ::poll(nullptr, 0, step_ms);
      continue;
    }
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
  }
  return 0;
}

// The peer is checked after connecting, because another user could have created a socket at this path.
Result<Fd> connect_local(const Address& address, Time deadline) {
  const auto name = unix_address(address.host);
  if (!name) return name.error();
  Fd fd{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!fd) return Error{"cannot make a socket: " + error_text(errno)};
  if (const int error =
          connect_within(fd.get(), reinterpret_cast<const sockaddr*>(&name.value()), sizeof(sockaddr_un), deadline)) {
    return Error{"no hocket-server listens at " + address.host + ": " + error_text(error)};
  }
  const auto peer = peer_of(fd.get());
  if (!peer) return peer.error();
  if (is_trusted(peer.value().user)) return fd;
  return Error{"the process that listens at " + address.host + " belongs to user " + std::to_string(peer.value().user) +
               ", neither to user " + std::to_string(geteuid()) + " nor to root; it is not used"};
}

// Tries all addresses of the host in turn. The error is that of the last one.
Result<Fd> connect_tcp(const Address& address, Time deadline) {
  auto resolved = resolve(address, 0);
  if (!resolved) return resolved.error();
  int error = EHOSTUNREACH;
  for (const addrinfo* one = resolved.value().get(); one != nullptr; one = one->ai_next) {
    Fd fd{socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!fd) continue;
    error = connect_within(fd.get(), one->ai_addr, one->ai_addrlen, deadline);
    if (error == 0) return fd;
  }
  return Error{"no hocket-server listens at " + address.host + ":" + address.port + ": " + error_text(error)};
}

// Returns the port that the socket is bound to.
std::string port_of(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  std::array<char, 16> port{};
  getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&name), size, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV);
  return port.data();
}

constexpr std::size_t number_digits = 16;  // of an instance or a node

bool is_number(std::string_view text) {
  return text.size() == number_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Cuts off what follows the last `mark`, and returns it; nothing if the text has no such mark.
std::optional<std::string_view> cut_off(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

// Reads the path of a Unix socket. Paths may contain the marks, too.
Address read_local(std::string_view path) {
  std::string_view rest = path;
  const auto node = cut_off(rest, '@');
  const auto instance = cut_off(rest, '#');
  if (!node || !is_number(*node) || !instance || !is_number(*instance)) return {true, std::string{path}, {}, {}, {}};
  return {true, std::string{rest}, {}, std::string{*instance}, std::string{*node}};
}

}  // namespace

Result<Address> read_address(std::string_view word) {
  const Error fault{"'" + std::string{word} +
                    "' is no address of a server; write unix:/path or tcp:host:port#instance"};
  if (word.starts_with("unix:/")) return read_local(word.substr(5));
  if (!word.starts_with("tcp:")) return fault;
  std::string_view rest = word.substr(4);
  const auto node = cut_off(rest, '@');
  const auto instance = cut_off(rest, '#');
  if ((node && !is_number(*node)) || (instance && !is_number(*instance)) || (node && !instance)) return fault;
  const std::size_t colon = rest.rfind(':');
  if (colon == 0 || colon == std::string_view::npos || colon + 1 == rest.size()) return fault;
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string_view port = rest.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != std::string_view::npos) return fault;
  return Address{false, std::string{host}, std::string{port}, std::string{instance.value_or("")},
                 std::string{node.value_or("")}};
}

std::string identity_of(const Address& address) {
  // The kernel says who listens at the path, so that need not be proved.
  if (address.local) return address.instance.empty() ? std::string{} : "unix:#" + address.instance;
  const bool brackets = address.host.find(':') != std::string::npos;
  const std::string host = brackets ? "[" + address.host + "]" : address.host;
  return "tcp:" + host + ":" + address.port + (address.instance.empty() ? "" : "#" + address.instance);
}

std::string text_of(const Address& address) {
  if (address.local)
    return "unix:" + address.host + (address.instance.empty() ? "" : "#" + address.instance + "@" + address.node);
  return identity_of(address) + (address.node.empty() ? "" : "@" + address.node);
}

// The kernel's boot id is a random UUID. All containers of a node have the same, so they are one node.
std::string node_number() { return hocket::node_number(); }

Result<std::vector<Address>> read_addresses(std::string_view text) {
  std::vector<Address> addresses;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    auto address = read_address(text.substr(at, end - at));
    if (!address) return address.error();
    addresses.push_back(std::move(address).value());
    at = end;
  }
  if (addresses.empty()) return Error{"a server without an address"};
  return addresses;
}

Result<Fd> connect_to(const Address& address, Time deadline) {
  auto fd = address.local ? connect_local(address, deadline) : connect_tcp(address, deadline);
  if (fd) tune(fd.value().get(), address.local);
  return fd;
}

void tune(int socket, bool local) {
  // The kernel adapts the buffers of TCP to the connection, so they are not set.
  constexpr int on = 1;
  if (local) {
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &socket_buffer_bytes, sizeof socket_buffer_bytes);
  } else {
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // If the other node fails silently, the connection ends after half a minute: 15 s + 3 · 5 s.
    constexpr int idle_s = 15, between_s = 5, probes = 3;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  }
}

Result<Listener> listen_tcp(const Address& address) {
  const std::string name = address.host + ":" + address.port;
  auto resolved = resolve(address, AI_PASSIVE);
  if (!resolved) return resolved.error();
  const addrinfo& first = *resolved.value();
  Fd fd{socket(first.ai_family, first.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  constexpr int on = 1;
  constexpr int backlog = 1024;
  if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd || bind(fd.get(), first.ai_addr, first.ai_addrlen) != 0 || listen(fd.get(), backlog) != 0) {
    return Error{"cannot listen at " + name + ": " + error_text(errno) + "; name another with --tcp"};
  }
  Address listens{false, address.host, port_of(fd.get()), new_instance(), {}};
  return Listener{std::move(fd), std::move(listens)};
}

bool wait_for(int descriptor, short events, Time deadline) {
  while (true) {
    const Duration left = deadline - node_now();
    if (left <= Duration::zero()) return false;
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    pollfd waited{descriptor, events, 0};
    if (ppoll(&waited, 1, &timeout, nullptr) > 0) return true;
  }
}

}  // namespace hocket::transport
