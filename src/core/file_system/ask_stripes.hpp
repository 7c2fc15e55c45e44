// Asks Lustre and BeeGFS for the stripes of a file, by the file system's own interface, without its tools and
// libraries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/function_ref.hpp"
#include "file_system/file_stripes.hpp"

namespace hocket::file_system {

// Return the stripes of the file; nothing if they are not known. One to three system calls on the file's metadata, on
// BeeGFS one more for each target.
std::optional<FileStripes> stripes_of(const std::string& path);
std::optional<FileStripes> stripes_of(int descriptor);

// Return true if the file is on a file system that tells stripes. One system call.
bool tells_stripes(const std::string& path);

// Returns the stripes of a file on BeeGFS. `ask(request, argument)` is ioctl on that file.
using AskFileSystem = FunctionRef<int(unsigned long, void*)>;
std::optional<FileStripes> beegfs_stripes(AskFileSystem ask);

// The arguments of BeeGFS's ioctls for a layout, as its client defines them.
struct BeegfsStripeInfo {
  unsigned pattern;
  unsigned chunk_size;
  unsigned short targets;
};
struct BeegfsStripeTarget {
  unsigned short index;  // the caller sets it
  unsigned short target;
  unsigned short node;
  char node_name[256];
};
extern const unsigned long beegfs_stripe_info;    // request number for BeegfsStripeInfo
extern const unsigned long beegfs_stripe_target;  // request number for BeegfsStripeTarget

}  // namespace hocket::file_system
