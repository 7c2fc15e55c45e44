// Addresses of a server ("unix:/path#instance@node tcp:host:port#instance@node") and the sockets to reach it.
// Thread-safe; nothing throws.
//
// A port or a path may belong to another process by the time a client connects, and a path leads to another server on
// each node. So a server has a random number for the time that it runs, its instance, which its addresses name: a
// client shows that it means this one (proof.hpp). The node's number tells a client of the same node that it must use
// the Unix socket, and a client of another node that it must not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/time.hpp"

namespace hocket::transport {

// One address of a server.
struct Address {
  bool local = false;  // true: a Unix socket
  std::string host;    // host name, or the path of a Unix socket
  std::string port;    // decimal; empty for a Unix socket
  // 16 hexadecimal digits each; empty if unknown. A Unix socket has both or none.
  std::string instance;
  std::string node;
};

// Parses "unix:/path" or "tcp:host:port", which "#instance" and then "@node" may follow. A host in brackets may contain
// colons (IPv6). What follows the path of a Unix socket belongs to the path, unless it is both in full.
Result<Address> read_address(std::string_view word);
// Inverts read_address().
std::string text_of(const Address& address);
// Returns what identifies the server of an address to both ends: "tcp:host:port#instance", or "unix:#instance".
std::string identity_of(const Address& address);
// Returns the number of this node, which is that of its kernel's start; empty if the kernel does not say it.
std::string node_number();
// Parses addresses separated by blanks. Fails if one is invalid, or if there is none.
Result<std::vector<Address>> read_addresses(std::string_view text);

// Returns a connected, non-blocking socket, or an error when the deadline has come (the name resolution of a host is
// not bounded by it). A Unix socket is refused if its other end belongs to neither this user nor root.
Result<Fd> connect_to(const Address& address, Time deadline);
// Sets socket options. A Unix socket gets a send buffer of 1 MiB, with room for some frames. A TCP socket sends
// without delay (TCP_NODELAY) and detects a dead peer by keepalive probes.
void tune(int socket, bool local);

// A listening TCP socket, and its address: with a new instance, and the port that the kernel chose if "0" was
// requested.
struct Listener {
  Fd socket;
  Address address;
};
Result<Listener> listen_tcp(const Address& address);

// Waits until the descriptor is ready for `events` of poll(2). Returns false when the deadline has come.
bool wait_for(int descriptor, short events, Time deadline);

}  // namespace hocket::transport
