// Runtime directories: hocketd and hocket-server put sockets, locks and secrets only where no other user can.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hocket::bus {

// Creates the directory (mode 0700) if there is none, and its parents. Returns an error if it is a symbolic link,
// belongs to another user, or is open to others. `option` names the option that chooses another directory, for errors.
Status make_private_directory(const std::string& directory, const std::string& option);

}  // namespace hocket::bus
