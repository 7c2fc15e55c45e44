// The number by which programs recognise their node: it differs between nodes, and is one for all containers of a node.
// It makes system calls, so pure folders must not include it.
#pragma once

#include <algorithm>
#include <string>

#include "base/whole_file.hpp"

namespace hocket {

// Returns the first 16 hexadecimal digits of the kernel's boot id; "" if they cannot be read.
inline std::string node_number() {
  constexpr std::size_t digits = 16;
  std::string number = whole_file("/proc/sys/kernel/random/boot_id", 64);
  number.erase(std::remove(number.begin(), number.end(), '-'), number.end());
  number.resize(std::min(number.size(), digits));
  const bool is_whole = number.size() == digits && number.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_whole ? number : std::string{};
}

}  // namespace hocket
