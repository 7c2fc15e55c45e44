#include "io_client/local.hpp"

#include <algorithm>
#include <array>

namespace hocket::io_client {

// Bytes of a staging chunk, which stays in the cache between its two copies.
constexpr std::int64_t chunk_bytes = 64 << 10;

layout::Walk memory_walk(const Local& local, layout::Extent data) {
  return local.memory.walk({data.first - local.data.first, data.end - local.data.first});
}

std::byte* run_of(layout::Walk walk, std::byte* buffer, std::int64_t origin) {
  const std::int64_t bytes = walk.left();
  const layout::Strip strip = walk.next();
  if (strip.bytes() != bytes || strip.count != 1) return nullptr;
  // The address is computed as a number: with MPI_BOTTOM the layout holds absolute addresses, and the buffer is null.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): see above
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(buffer) + (strip.at - origin));
}

// Uses one copy if either side is one contiguous run, else goes through chunks that stay in the cache.
void copy(const Local& local, layout::Extent data, std::byte* window, std::int64_t origin) {
  layout::Walk memory = memory_walk(local, data);
  layout::Walk file = local.view.walk(data);
  if (std::byte* run = run_of(memory, local.buffer, 0)) {
    if (local.writes) return layout::scatter(file, window, origin, bytes_at(run, data.count()));
    return layout::gather(file, window, origin, bytes_at(run, data.count()));
  }
  if (std::byte* run = run_of(file, window, origin)) {
    if (local.writes) return layout::gather(memory, local.buffer, 0, bytes_at(run, data.count()));
    return layout::scatter(memory, local.buffer, 0, bytes_at(run, data.count()));
  }
  std::array<std::byte, chunk_bytes> chunk;
  while (memory.left() > 0) {
    const std::span<std::byte> part = bytes_at(chunk.data(), std::min(memory.left(), chunk_bytes));
    if (local.writes) {
      layout::gather(memory, local.buffer, 0, part);
      layout::scatter(file, window, origin, part);
    } else {
      layout::gather(file, window, origin, part);
      layout::scatter(memory, local.buffer, 0, part);
    }
  }
}

}  // namespace hocket::io_client
