// A number that stands for a file of this node, by device and inode.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace hocket {

// Two files may have the same key. Whoever looks a file up by key must bear that.
using FileKey = std::uint64_t;
constexpr FileKey no_file = 0;

inline FileKey key_of(dev_t device, ino_t inode) {
  constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;  // odd, 2^64 divided by the golden ratio
  return (inode + device * spread) * spread | 1;
}

}  // namespace hocket
