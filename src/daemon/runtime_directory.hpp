// The runtime directory of a leader. It is private to one user, and one daemon at a time leads in it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "bus/local_socket.hpp"

namespace hocket::daemon {

// Creates the directory (mode 0700) if there is none. Returns an error if it belongs to another user or is open to
// others.
Status prepare(const std::string& directory);

// Takes the lead in the directory for as long as the descriptor is open. The kernel releases the lock when the
// process ends in any way. Returns an error that names the leading process if there is one.
Result<bus::Fd> take_lead(const std::string& directory);

}  // namespace hocket::daemon
