// The secret that the nodes of a cluster share: by it, agents and leader know each other (TLS with a pre-shared key).
// No function throws, and all are thread-safe.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hocket::link {

// Reads the key of a file, without the white space around it: 32 to 256 bytes. Fails if others than this user and root
// could have written or can read the file.
Result<std::string> read_key(const std::string& path);

// Writes a new random key to a new file with mode 0600, whose directory is made if needed. Fails if the file exists.
Status make_key(const std::string& path);

// Returns the secret of the I/O servers of this user's daemons in the cluster with this key, 64 hexadecimal digits. It
// is the same on all nodes and after each start, and does not show the key.
Result<std::string> secret_of_servers(const std::string& key);

}  // namespace hocket::link
