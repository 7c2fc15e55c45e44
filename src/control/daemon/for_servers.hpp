// The files that hocketd leaves in its runtime directory for the I/O servers of its node (base/server_files.hpp).
// Thread-safe; nothing throws.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hocket::daemon {

// Writes the secret of the servers of a cluster, in place of another one. Fails if the directory is not usable.
Status leave_secret(const std::string& runtime_directory, const std::string& secret);

// Writes the host by which other nodes reach this one; "": none is known, and what an earlier daemon has left is
// removed. A server that starts later listens there.
Status leave_address(const std::string& runtime_directory, const std::string& host);

}  // namespace hocket::daemon
