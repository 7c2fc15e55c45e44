// This process's part of an access: where its data are in the file and in memory. Also the copies between this memory
// and a buffer. Pure but for the memory that the copies write. Safe in several threads for disjoint data.
#pragma once

#include "layout/copy.hpp"
#include "layout/layout.hpp"
#include "layout/view.hpp"

namespace hocket::io_client {

// One process's access: byte `data.first` of the view's data corresponds to the first byte of the memory's data.
// `buffer` is the program's, and must stay valid and unchanged for the whole access.
struct Local {
  bool writes = false;
  layout::FileView view;
  layout::Extent data;    // bytes of data of the view
  layout::Layout memory;  // of the buffer
  std::byte* buffer = nullptr;
};

// Joins an address and a count, both of which the code here keeps signed.
inline std::span<std::byte> bytes_at(std::byte* at, std::int64_t count) {
  return {at, static_cast<std::size_t>(count)};
}

// Returns a walk over the memory of the given bytes of the view's data. Precondition: they lie within local.data.
layout::Walk memory_walk(const Local& local, layout::Extent data);

// Returns the address of the walk's bytes if they are one contiguous run, else nullptr. Byte `address` of the walk's
// layout is at buffer + (address - origin). A run is sent and received without a staging copy.
std::byte* run_of(layout::Walk walk, std::byte* buffer, std::int64_t origin);

// Copies the data between this process's memory and a buffer whose first byte is at `origin` in the file. Writes copy
// into the buffer, reads out of it.
void copy(const Local& local, layout::Extent data, std::byte* window, std::int64_t origin);

}  // namespace hocket::io_client
