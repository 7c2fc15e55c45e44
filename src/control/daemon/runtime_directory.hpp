// The lead in a runtime directory (bus/private_directory.hpp): one daemon at a time has it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "bus/local_socket.hpp"

namespace hocket::daemon {

// Takes the lead in the directory for as long as the descriptor is open. The kernel releases the lock when the
// process ends in any way. Returns an error that names the leading process if there is one.
Result<bus::Fd> take_lead(const std::string& directory);

// Leaves the operator's names of targets in the directory, where tools find them for the programs that they start. No
// names: no file.
void leave_target_names(const std::string& directory, const std::string& names, bool for_all_users);

}  // namespace hocket::daemon
