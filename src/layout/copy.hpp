// Copies between what a walk goes over (a datatype in memory, or a view's part of a file in a buffer) and contiguous
// data.
//
// Byte `address` of the walk's layout is at buffer + (address - origin): origin is 0 for a datatype in memory, and the
// file offset of the buffer's first byte for a view. Only bytes of the layout are touched. A walk stands behind the
// bytes that were copied, so the next call goes on there; every piece may have any length. Precondition of both: the
// data are not longer than walk.left(), and do not overlap the buffer's bytes.
#pragma once

#include <cstddef>
#include <span>

#include "layout/walk.hpp"

namespace hocket::layout {

// Packs: the next data.size() bytes of the layout into `data`.
void gather(Walk& walk, const void* buffer, std::int64_t origin, std::span<std::byte> data);

// Unpacks: `data` into the next data.size() bytes of the layout.
void scatter(Walk& walk, void* buffer, std::int64_t origin, std::span<const std::byte> data);

}  // namespace hocket::layout
