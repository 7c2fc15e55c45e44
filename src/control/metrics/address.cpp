#include "metrics/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/unix_address.hpp"
#include "bus/local_socket.hpp"

namespace hocket::metrics {
namespace {

constexpr std::string_view unix_prefix = "unix:";
constexpr int backlog = 64;  // connections that wait to be accepted; the kernel lets others try again after a second

Error wrong(const std::string& text, const std::string& what) {
  return Error{"'" + text + "' is no address: " + what +
               "; write HOST:PORT with a numeric address, e.g. \"127.0.0.1:9321\" or \"[::1]:9321\", or "
               "\"unix:/PATH\""};
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

// Writes the host into the address; false if it is no numeric one.
bool set_host(std::string host, std::uint16_t port, MetricsAddress& address) {
  if (host == "localhost") host = "127.0.0.1";
  auto* ip4 = reinterpret_cast<sockaddr_in*>(&address.tcp);
  if (inet_pton(AF_INET, host.c_str(), &ip4->sin_addr) == 1) {
    ip4->sin_family = AF_INET;
    ip4->sin_port = htons(port);
    address.tcp_bytes = sizeof *ip4;
    return true;
  }
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return false;
  auto* ip6 = reinterpret_cast<sockaddr_in6*>(&address.tcp);
  if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &ip6->sin6_addr) != 1) return false;
  ip6->sin6_family = AF_INET6;
  ip6->sin6_port = htons(port);
  address.tcp_bytes = sizeof *ip6;
  return true;
}

std::string text_of(const sockaddr_storage& tcp) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (tcp.ss_family == AF_INET) {
    const auto* ip4 = reinterpret_cast<const sockaddr_in*>(&tcp);
    inet_ntop(AF_INET, &ip4->sin_addr, host.data(), host.size());
    return std::string{host.data()} + ":" + std::to_string(ntohs(ip4->sin_port));
  }
  const auto* ip6 = reinterpret_cast<const sockaddr_in6*>(&tcp);
  inet_ntop(AF_INET6, &ip6->sin6_addr, host.data(), host.size());
  return "[" + std::string{host.data()} + "]:" + std::to_string(ntohs(ip6->sin6_port));
}

Result<MetricsListener> listen_on_tcp(const MetricsAddress& address) {
  const auto failed = [&] {
    return Error{"cannot serve metrics at " + text_of(address.tcp) + ": " + error_text(errno)};
  };
  MetricsListener listener{Fd{socket(address.tcp.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)}, {}};
  if (!listener.socket) return failed();
  const int fd = listener.socket.get();
  // A daemon that is started again must not wait for the last connections of the one before.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // "[::]" means IPv6 alone, whatever the machine's default is.
  if (address.tcp.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address.tcp), address.tcp_bytes) != 0) return failed();
  if (listen(fd, backlog) != 0) return failed();
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return failed();
  listener.text = text_of(bound);
  return listener;
}

// Returns what prevents a socket at this path; "" if nothing does. A file of another kind is a mistake, and must not be
// removed.
std::string obstacle_at(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) return "there is a file that is no socket";
  const auto address = unix_address(path);
  if (!address) return address.error().text;
  const Fd probe{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const bool answers =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address.value()), sizeof(sockaddr_un)) == 0;
  return answers || errno == EAGAIN ? "another process listens there" : "";
}

Result<MetricsListener> listen_on_path(const std::string& path) {
  if (const std::string obstacle = obstacle_at(path); !obstacle.empty()) {
    return Error{"cannot serve metrics at " + std::string{unix_prefix} + path + ": " + obstacle};
  }
  auto socket = bus::listen_at(path);
  if (!socket) return socket.error();
  return MetricsListener{std::move(socket).value(), std::string{unix_prefix} + path};
}

}  // namespace

bool MetricsAddress::is_local() const {
  if (!path.empty()) return true;
  if (tcp.ss_family == AF_INET) {
    const auto* ip4 = reinterpret_cast<const sockaddr_in*>(&tcp);
    return ntohl(ip4->sin_addr.s_addr) >> 24U == IN_LOOPBACKNET;
  }
  const auto* ip6 = reinterpret_cast<const sockaddr_in6*>(&tcp);
  return IN6_IS_ADDR_LOOPBACK(&ip6->sin6_addr) != 0;
}

Result<MetricsAddress> parse_address(const std::string& text) {
  MetricsAddress address;
  if (text.starts_with(unix_prefix)) {
    address.path = text.substr(unix_prefix.size());
    if (!address.path.starts_with('/')) return wrong(text, "the path must begin with /");
    if (const auto possible = unix_address(address.path); !possible) return wrong(text, possible.error().text);
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong(text, "it has no port");
  const auto port = port_of(std::string_view{text}.substr(colon + 1));
  if (!port) return wrong(text, "the port must be 0 to 65535");
  if (!set_host(text.substr(0, colon), *port, address)) return wrong(text, "names are not looked up");
  return address;
}

Result<MetricsListener> listen_at(const MetricsAddress& address) {
  return address.path.empty() ? listen_on_tcp(address) : listen_on_path(address.path);
}

}  // namespace hocket::metrics
