// Copies between non-contiguous data and contiguous memory. A walk gives the positions of the data: a datatype in
// memory, or a view's part of a file in a buffer.
//
// Byte `address` of the walk's layout is at buffer + (address - origin). For a datatype in memory, the origin is 0;
// for a view, it is the file offset of the buffer's first byte. Only bytes of the layout are accessed. The walk
// advances beyond the bytes that were copied, so the data may be copied in chunks of any lengths. Precondition of
// both functions: the data are not longer than walk.left(), and do not overlap the buffer's bytes.
#pragma once

#include <cstddef>
#include <span>

#include "layout/walk.hpp"

namespace hocket::layout {

// Packs the next data.size() bytes of the layout into `data`.
void gather(Walk& walk, const void* buffer, std::int64_t origin, std::span<std::byte> data);

// Unpacks `data` into the next data.size() bytes of the layout.
void scatter(Walk& walk, void* buffer, std::int64_t origin, std::span<const std::byte> data);

}  // namespace hocket::layout
