// Unix sockets of daemons: where they are, and which processes may use them. Client and node agent share this file.
//
// Nothing throws. Not for concurrent use with changes of the environment, which it reads. `listen_at` changes the umask
// of the whole process for a moment.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace hocket::bus {

using hocket::error_text;
using hocket::Fd;
using hocket::is_trusted;
using hocket::Peer;
using hocket::peer_of;

// Returns the runtime directory (docs/design/environment.md says which; python/hocket/paths.py chooses alike).
std::string runtime_directory();
// Returns the path of the daemon's socket in a runtime directory.
std::string socket_in(const std::string& directory);
// Returns the path of the socket to use: $HOCKET_SOCKET, else the socket in $HOCKET_DIR, else that of the daemon of all
// users, if there is one, else the socket in the runtime directory.
std::string default_socket();

// The runtime directory of the daemon that serves all users. Those of several leaders have a name behind a hyphen:
// "/run/hocket-scratch".
inline constexpr const char* system_directory = "/run/hocket";
// Returns the user whose daemon serves all users at this socket: root has made such a directory for it. Nothing if
// there is none, or the socket is elsewhere.
std::optional<uid_t> system_owner(const std::string& socket);

// Connects to the socket at `path`, within `timeout`. Fails if its directory or the listening process belongs to
// neither this user nor root, nor to the owner of a system's daemon: another user could otherwise impersonate it.
Result<Fd> connect_to(const std::string& path, Duration timeout);

// Returns the identity of the file at `path`, by which a daemon recognises that its socket was replaced; nothing if
// there is no file.
std::optional<std::pair<dev_t, ino_t>> file_at(const std::string& path);

// Listens at `path`, non-blocking, with mode 0600, or 0666 if all users may connect. An existing file there is removed,
// so the caller must hold the directory's lock.
Result<Fd> listen_at(const std::string& path, bool for_all_users = false);

}  // namespace hocket::bus
