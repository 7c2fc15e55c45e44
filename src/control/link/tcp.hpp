// TCP sockets of the link: non-blocking, without delay for small messages. Nothing throws; thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace hocket::link {

// An address in the kernel's form.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t bytes = 0;
};

// Returns all addresses of HOST:PORT; a host that is an IPv6 address stands in brackets. It may wait for the resolver.
// `to_listen`: for `listen_at`.
Result<std::vector<Endpoint>> resolve(const std::string& address, bool to_listen = false);

// Listens at each address of HOST:PORT. Fails if that is not possible at any.
Result<std::vector<Fd>> listen_at(const std::string& address);
// Returns at which place of the list, from 1, the address is that of a leader of this node which listens at `own`;
// 0: at none. It may wait for the resolver.
std::int64_t place_in(const std::vector<std::string>& leaders, const std::string& own);
// Begins to connect. The socket is writable once that is decided: `connected` then says how.
Result<Fd> begin_to_connect(const Endpoint& endpoint);
Status connected(const Fd& socket);

// A connection of a listener. None: nobody waits.
struct Accepted {
  Fd socket;
  bool is_over_limit = false;  // no descriptor was left but the spare one: close it at once
};
// `spare` is given up for a moment if no descriptor is left, so that nobody stays in the queue.
Accepted accept_from(const Fd& listener, Fd& spare);
// Returns a descriptor to give up.
Fd spare_descriptor();
// Sets what connections of the link have.
void prepare(const Fd& socket);
// Returns the host of this end of a connection, as a number; "" if the kernel does not say it.
std::string own_host(int socket);
// Returns the address of the other end, for people.
std::string other_end(const Fd& socket);

}  // namespace hocket::link
