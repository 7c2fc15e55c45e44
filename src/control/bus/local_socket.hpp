// Unix sockets of one user: where they are, and which processes may use them. Client and node agent share this file.
//
// Nothing throws. Not for concurrent use with changes of the environment, which it reads. `listen_at` changes the umask
// of the whole process for a moment.
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

// Returns the runtime directory: $HOCKET_DIR, else $XDG_RUNTIME_DIR/hocket, else /tmp/hocket-<uid>.
std::string runtime_directory();
// Returns the path of the daemon's socket in a runtime directory.
std::string socket_in(const std::string& directory);
// Returns the path of the socket to use: $HOCKET_SOCKET, else the socket in the runtime directory.
std::string default_socket();

// Connects to the socket at `path`, within `timeout`. Fails if its directory or the listening process belongs to
// neither this user nor root: another user could otherwise impersonate the daemon.
Result<Fd> connect_to(const std::string& path, Duration timeout);

// Listens at `path` with mode 0600, non-blocking. An existing file there is removed, so the caller must hold the
// directory's lock.
Result<Fd> listen_at(const std::string& path);

}  // namespace hocket::bus
