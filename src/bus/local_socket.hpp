// Unix sockets of one user: where they are, who may use them. Shared by client and node agent.
//
// Nothing throws. Thread-safe but for the environment, which is read.
#pragma once

#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace hocket::bus {

using hocket::error_text;
using hocket::Fd;
using hocket::is_trusted;
using hocket::Peer;
using hocket::peer_of;

// $HOCKET_DIR, else $XDG_RUNTIME_DIR/hocket, else /tmp/hocket-<uid>.
std::string runtime_directory();
// The daemon's socket in a runtime directory.
std::string socket_in(const std::string& directory);
// $HOCKET_SOCKET, else the socket in the runtime directory.
std::string default_socket();

// Connects to the socket at `path`, within `timeout`. Fails where its directory or the process that listens belongs to
// neither this user nor root.
Result<Fd> connect_to(const std::string& path, Duration timeout);

// Listens at `path` with mode 0600, non-blocking. What was there is removed: the caller holds the directory's lock.
Result<Fd> listen_at(const std::string& path);

}  // namespace hocket::bus
