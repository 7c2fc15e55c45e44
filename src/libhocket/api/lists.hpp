// Describes a put or get whose data lie at a list of places in the file (file.h: hocket_file_put_list). It
// accesses nothing.
#pragma once

#include "api/access.hpp"

namespace hocket::api {

// Extents of the file, by offset and length. Their data follow each other in memory, in the order of the list.
struct ExtentList {
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> lengths;  // as many
};

// Returns the places of the data in the file and in memory. The error names the first wrong number, or two extents that
// overlap: of those, a put could not say which data are to stay. Extents without data are left out. O(n log n); if the
// offsets rise, O(n).
Result<Shape> shape_of(const ExtentList& list);

}  // namespace hocket::api
