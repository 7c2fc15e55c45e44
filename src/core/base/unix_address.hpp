// The address of a Unix socket. Pure folders must not include it.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>

#include "base/result.hpp"

namespace hocket {

// Returns the address of the socket at this path.
inline Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{"the socket's path '" + path + "' must have 1 to " + std::to_string(sizeof address.sun_path - 1) +
                 " bytes"};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace hocket
