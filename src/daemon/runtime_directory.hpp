// The directory of a leader: private to its user, and led by one daemon at a time.
#pragma once

#include <string>

#include "base/result.hpp"
#include "bus/local_socket.hpp"

namespace hocket::daemon {

// Makes the directory where there is none (mode 0700). Fails where it belongs to somebody else or is open to others.
Status prepare(const std::string& directory);

// Takes the lead in the directory, for as long as the descriptor lives and the kernel says: the lock ends with the
// process, however it ends. Fails, naming the process that leads, where there is one.
Result<bus::Fd> take_lead(const std::string& directory);

}  // namespace hocket::daemon
