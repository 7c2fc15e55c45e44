// This rank's part of a collective access, and its copies between the program's memory and a window of the file.
#pragma once

#include "layout/copy.hpp"
#include "layout/layout.hpp"
#include "layout/view.hpp"

namespace hocket::runtime::io {

using layout::Interval;

// Data of the memory correspond to those of the view from `data.first` on.
struct Local {
  bool writes = false;
  layout::View view;
  Interval data;
  layout::Layout memory;
  std::byte* buffer = nullptr;
};

inline std::span<std::byte> bytes_at(std::byte* at, std::int64_t count) {
  return {at, static_cast<std::size_t>(count)};
}

// Over what the interval of the view's data has in memory.
layout::Walk memory_walk(const Local& local, Interval data);

// Where the bytes of a walk are, if they are one run; else nullptr. Byte `address` of its layout is at
// buffer + (address - origin).
std::byte* run_of(layout::Walk walk, std::byte* buffer, std::int64_t origin);

// Between this rank's memory and a window whose first byte is at `origin` in the file: into the window where it writes.
void copy(const Local& local, Interval data, std::byte* window, std::int64_t origin);

}  // namespace hocket::runtime::io
