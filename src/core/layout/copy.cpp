#include "layout/copy.hpp"

#include <cstring>

namespace hocket::layout {
namespace {

// Copies blocks of a length that the compiler knows, so that it can use registers instead of calling memcpy.
template <std::size_t length>
void copy_blocks(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to, from, length);
    from += from_stride;
    to += to_stride;
  }
}

// Copies `count` blocks. The fixed lengths are those of numbers and of small structures of them.
void copy_blocks(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
                 std::int64_t count, std::int64_t length) {
  switch (length) {
    case 1: return copy_blocks<1>(from, from_stride, to, to_stride, count);
    case 2: return copy_blocks<2>(from, from_stride, to, to_stride, count);
    case 4: return copy_blocks<4>(from, from_stride, to, to_stride, count);
    case 8: return copy_blocks<8>(from, from_stride, to, to_stride, count);
    case 12: return copy_blocks<12>(from, from_stride, to, to_stride, count);
    case 16: return copy_blocks<16>(from, from_stride, to, to_stride, count);
    case 24: return copy_blocks<24>(from, from_stride, to, to_stride, count);
    case 32: return copy_blocks<32>(from, from_stride, to, to_stride, count);
    default: break;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<std::size_t>(length));
  }
}

// Computes with addresses as integers: a datatype of absolute addresses has no buffer (MPI_BOTTOM), and the origin of
// a file buffer lies outside of it, so pointer arithmetic would be undefined.
template <class Byte>
Byte* at(Byte* buffer, std::int64_t offset) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): see above
  return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(offset));
}

}  // namespace

void gather(Walk& walk, const void* buffer, std::int64_t origin, std::span<std::byte> data) {
  const std::byte* from = static_cast<const std::byte*>(buffer);
  while (!data.empty()) {
    const Strip strip = walk.next(static_cast<std::int64_t>(data.size()));
    copy_blocks(at(from, strip.at - origin), strip.stride, data.data(), strip.length, strip.count, strip.length);
    data = data.subspan(static_cast<std::size_t>(strip.bytes()));
  }
}

void scatter(Walk& walk, void* buffer, std::int64_t origin, std::span<const std::byte> data) {
  std::byte* to = static_cast<std::byte*>(buffer);
  while (!data.empty()) {
    const Strip strip = walk.next(static_cast<std::int64_t>(data.size()));
    copy_blocks(data.data(), strip.length, at(to, strip.at - origin), strip.stride, strip.count, strip.length);
    data = data.subspan(static_cast<std::size_t>(strip.bytes()));
  }
}

}  // namespace hocket::layout
