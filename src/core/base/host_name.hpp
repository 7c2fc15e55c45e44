// The name of this node, as the kernel reports it; "localhost" if it reports none. It makes a system call, so pure
// folders must not include it.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace hocket {

inline std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace hocket
