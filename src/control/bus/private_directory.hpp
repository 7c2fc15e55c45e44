// Runtime directories: hocketd and hocket-server put sockets, locks and secrets only where no other user can.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hocket::bus {

// Creates the directory (mode 0700) if there is none, and its parents. Returns an error if it is a symbolic link,
// belongs to another user, or is open to others. `option` names the option that chooses another directory, for errors.
// Others may enter and read it (mode 0755), but not change it, if it is `for_all_users`.
Status make_runtime_directory(const std::string& directory, const std::string& option, bool for_all_users = false);

}  // namespace hocket::bus
