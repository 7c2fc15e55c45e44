// Reads on which parts of its file system a file lies: "ost7" is the OST of Lustre with index 7, "target101" a storage
// target of BeeGFS, "mirror3" one of its buddy groups, and "mdt" the metadata targets of Lustre (data on MDT).
//
// The layout comes from the file system's own interface, without its tools and libraries. A file whose layout may still
// grow, or is not known, has none, and then uses the whole target.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "base/function_ref.hpp"
#include "session/file_parts.hpp"

namespace hocket::runtime {

// Returns the parts of the file; nothing if they are not known, or more than a request may name. One to three system
// calls on the file's metadata, on BeeGFS one more for each part.
std::optional<PartNames> layout_of(std::string_view file);

// True if the file is on a file system that tells layouts. One system call.
bool tells_layouts(std::string_view file);

// Returns the parts that the extended attribute "lustre.lov" names: a layout of version 1 or 3, or a composite of
// these. Nothing if it is no such layout, or if a component has no objects yet. Pure.
std::optional<PartNames> lustre_layout(std::span<const std::byte> attribute);

// Returns the parts of a file on BeeGFS. `ask(request, argument)` is ioctl on that file.
using AskFileSystem = FunctionRef<int(unsigned long, void*)>;
std::optional<PartNames> beegfs_layout(AskFileSystem ask);

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

}  // namespace hocket::runtime
