#include "link/tcp.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace hocket::link {
namespace {

// Time for which sent bytes may be without an answer of the other kernel.
constexpr unsigned int unanswered_ms = 5000;

void set(const Fd& socket, int level, int option, unsigned int value) {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

Result<Fd> socket_for(const Endpoint& endpoint) {
  Fd fd{socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!fd) return Error{"cannot make a socket: " + error_text(errno)};
  return fd;
}

// Returns the bytes of the address and the port, in network order.
struct HostAndPort {
  std::string_view host;
  in_port_t port = 0;
};
HostAndPort parts_of(const Endpoint& endpoint) {
  if (endpoint.address.ss_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(endpoint.address);
    return {{reinterpret_cast<const char*>(&six.sin6_addr), sizeof six.sin6_addr}, six.sin6_port};
  }
  const auto& four = reinterpret_cast<const sockaddr_in&>(endpoint.address);
  return {{reinterpret_cast<const char*>(&four.sin_addr), sizeof four.sin_addr}, four.sin_port};
}

// True if a socket of this node can have the address.
bool is_of_this_node(Endpoint endpoint) {
  const Fd probe{socket(endpoint.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (endpoint.address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(endpoint.address).sin6_port = 0;
  } else {
    reinterpret_cast<sockaddr_in&>(endpoint.address).sin_port = 0;
  }
  return probe && bind(probe.get(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.bytes) == 0;
}

// True if who connects to the address `to` reaches the listener `at`, which may listen at all addresses of the node.
bool is_reached_at(const Endpoint& at, const Endpoint& to) {
  if (at.address.ss_family != to.address.ss_family) return false;
  const HostAndPort listens = parts_of(at);
  const HostAndPort called = parts_of(to);
  if (listens.port != called.port) return false;
  const bool listens_at_all = listens.host.find_first_not_of('\0') == std::string_view::npos;
  return listens_at_all ? is_of_this_node(to) : listens.host == called.host;
}

Result<Fd> listen_at(const Endpoint& endpoint) {
  auto fd = socket_for(endpoint);
  if (!fd) return fd;
  set(fd.value(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (endpoint.address.ss_family == AF_INET6) set(fd.value(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  constexpr int backlog = 1024;
  const auto* const address = reinterpret_cast<const sockaddr*>(&endpoint.address);
  if (bind(fd.value().get(), address, endpoint.bytes) != 0 || listen(fd.value().get(), backlog) != 0)
    return Error{error_text(errno)};
  return fd;
}

}  // namespace

Result<std::vector<Endpoint>> resolve(const std::string& address, bool to_listen) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    return Error{"'" + address + "' is no address: write HOST:PORT"};
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_ADDRCONFIG | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &wanted, &found);
  if (failed != 0) return Error{std::string{"its host is not found: "} + gai_strerror(failed)};
  std::vector<Endpoint> endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Endpoint endpoint;
    endpoint.bytes = one->ai_addrlen;
    std::memcpy(&endpoint.address, one->ai_addr, one->ai_addrlen);
    endpoints.push_back(endpoint);
  }
  freeaddrinfo(found);
  return endpoints;
}

namespace {

// Returns the host of one end of a connection as a number; "" if the kernel does not say it.
template <class NameOfEnd>
std::string end_of(int socket, NameOfEnd name_of_end) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  if (name_of_end(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) !=
          0)
    return {};
  return host.data();
}

}  // namespace

Result<std::vector<Fd>> listen_at(const std::string& address) {
  const auto endpoints = resolve(address, true);
  if (!endpoints) return Error{"cannot listen at " + address + ": " + endpoints.error().text};
  std::vector<Fd> listeners;
  std::string why;
  for (const Endpoint& endpoint : endpoints.value()) {
    auto fd = listen_at(endpoint);
    if (fd) {
      listeners.push_back(std::move(fd).value());
    } else {
      why = fd.error().text;
    }
  }
  if (listeners.empty()) return Error{"cannot listen at " + address + ": " + why};
  return listeners;
}

std::int64_t place_in(const std::vector<std::string>& leaders, const std::string& own) {
  const auto listens = resolve(own, true);
  if (!listens) return 0;
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    const auto named = resolve(leaders[i]);
    if (!named) continue;
    for (const Endpoint& one : named.value()) {
      if (std::ranges::any_of(listens.value(), [&](const Endpoint& at) { return is_reached_at(at, one); }))
        return static_cast<std::int64_t>(i) + 1;
    }
  }
  return 0;
}

Result<Fd> begin_to_connect(const Endpoint& endpoint) {
  auto fd = socket_for(endpoint);
  if (!fd) return fd;
  prepare(fd.value());
  const auto* const address = reinterpret_cast<const sockaddr*>(&endpoint.address);
  if (connect(fd.value().get(), address, endpoint.bytes) == 0 || errno == EINPROGRESS) return fd;
  return Error{error_text(errno)};
}

Status connected(const Fd& socket) {
  int failed = 0;
  socklen_t size = sizeof failed;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failed, &size) != 0) failed = errno;
  return failed == 0 ? success() : Status{Error{error_text(failed)}};
}

Accepted accept_from(const Fd& listener, Fd& spare) {
  Fd fd{accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (fd || (errno != EMFILE && errno != ENFILE)) return {std::move(fd), false};
  spare = Fd{};
  return {Fd{accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)}, true};
}

Fd spare_descriptor() { return Fd{::open("/dev/null", O_RDONLY | O_CLOEXEC)}; }

void prepare(const Fd& socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, unanswered_ms);
}

std::string own_host(int socket) {
  std::string host = end_of(socket, getsockname);
  // An IPv4 address in the form of IPv6: the listener takes both.
  constexpr std::string_view mapped = "::ffff:";
  if (host.starts_with(mapped)) host.erase(0, mapped.size());
  return host;
}

std::string other_end(const Fd& socket) {
  std::string host = end_of(socket.get(), getpeername);
  return host.empty() ? "unknown" : host;
}

}  // namespace hocket::link
