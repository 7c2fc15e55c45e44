// Names on which parts of its file system a file lies: "ost7" is the OST of Lustre with index 7, "target101" a storage
// target of BeeGFS, "mirror3" one of its buddy groups, and "mdt" the metadata targets of Lustre (data on MDT).
//
// A file whose layout may still grow, or is not known, has no names, and then uses the whole target.
#pragma once

#include <optional>
#include <string_view>

#include "file_system/file_stripes.hpp"
#include "session/file_parts.hpp"

namespace hocket::runtime {

// Returns the parts of the file; nothing if they are not known, or more than a request may name. Costs the system calls
// of file_system::stripes_of.
std::optional<PartNames> layout_of(std::string_view file);

// True if the file is on a file system that tells layouts. One system call.
bool tells_layouts(std::string_view file);

// Returns the names of the parts with these stripes; nothing if an extent has no data server yet, or there are more
// than a request may name.
std::optional<PartNames> part_names(const file_system::FileStripes& stripes);

}  // namespace hocket::runtime
