// The address at which /metrics is served: a numeric TCP address or the path of a Unix socket. Nothing throws.
#pragma once

#include <sys/socket.h>

#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace hocket::metrics {

struct MetricsAddress {
  std::string path;        // of a Unix socket; "": TCP
  sockaddr_storage tcp{};  // valid without a path
  socklen_t tcp_bytes = 0;

  // True if only processes of this machine can connect.
  bool is_local() const;
};

// Reads "HOST:PORT", with a numeric address or localhost as HOST, or "unix:/PATH". Names are not looked up, because a
// look-up may take long and may lead elsewhere the next time.
Result<MetricsAddress> parse_address(const std::string& text);

// Returns a socket that listens at the address without blocking, and the address as text: port 0 becomes the port that
// the kernel has chosen. A Unix socket has mode 0600, and replaces one at which nobody listens any more.
struct MetricsListener {
  Fd socket;
  std::string text;
};
Result<MetricsListener> listen_at(const MetricsAddress& address);

}  // namespace hocket::metrics
