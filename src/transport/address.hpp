// Where a server listens: "unix:/path tcp:host:port", and how it is reached. Thread-safe; nothing throws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/time.hpp"

namespace hocket::transport {

struct Address {
  bool local = false;  // a Unix socket
  std::string host;    // or the socket's path
  std::string port;
};

// "unix:/path" or "tcp:host:port"; a host in brackets may hold colons.
Result<Address> read_address(std::string_view word);
// Words divided by blanks. Fails where one is no address, or there is none.
Result<std::vector<Address>> read_addresses(std::string_view text);

// A connected socket, within the time. A Unix socket whose other end is neither this user's nor root's is not used.
Result<Fd> connect_to(const Address& address, Time deadline);
// Sockets that send at once, with room for some frames.
void tune(int socket, bool local);

// A TCP socket that listens, and its address with the port that it was given ("0": the kernel chooses).
struct Listener {
  Fd socket;
  std::string address;
};
Result<Listener> listen_tcp(const Address& address);

// Waits until the socket is ready for `events` of poll(2); false: the deadline has come.
bool wait_for(int descriptor, short events, Time deadline);

}  // namespace hocket::transport
