// Files of the runtime directory by which hocketd and the I/O servers of its node find each other. All are in the
// directory `servers`, which no other user may enter. Pure: these functions make paths.
#pragma once

#include <string>

namespace hocket::server_files {

inline std::string directory(const std::string& runtime_directory) { return runtime_directory + "/servers"; }

// The secret by which servers and clients know each other over TCP (transport/proof.hpp). In a cluster, hocketd makes
// it of the cluster's key; else the first server with a TCP address does.
inline std::string secret(const std::string& runtime_directory) { return directory(runtime_directory) + "/secret"; }

// The host by which other nodes of the cluster reach this one. It exists while hocketd knows it.
inline std::string address(const std::string& runtime_directory) { return directory(runtime_directory) + "/address"; }

// The lock of a server's name. The server holds it (flock) until all its threads have ended, and writes its instance
// into it. So whoever can lock the file, or reads another instance, knows that the server has ended.
inline std::string lock(const std::string& runtime_directory, const std::string& server) {
  return directory(runtime_directory) + "/" + server + ".lock";
}

}  // namespace hocket::server_files
