// Accesses to the file system. Nothing here knows of clients. All functions are thread-safe, and report errors as
// numbers of errno.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "server/scheduler.hpp"

namespace hocket::server {

// Opens the file at `path` below `directory`, and nothing outside (openat2, RESOLVE_BENEATH): neither a link nor ".."
// leads out. `flags` are those of open(2). EINVAL: no regular file. EXDEV: outside of the directory.
struct OpenedFile {
  Fd file;
  int error = 0;
};
OpenedFile open_beneath(int directory, const char* path, int flags);

// Result of one request of a batch.
struct AccessOutcome {
  int error = 0;           // first error that concerns its own bytes; 0: none
  std::int64_t bytes = 0;  // bytes read, up to the end of the file, or written
};

// Carries out a batch: reads or writes each extent with as few system calls as its chunks allow. It continues
// short accesses. An error concerns only the requests whose bytes were not accessed because of it; the rest of the
// batch is tried nevertheless.
//
// `data` holds the memory of each request of the batch. `scratch` is memory for extents with many short chunks
// or with gaps, which are copied. Returns one outcome for each request, in the order of the batch's tickets.
std::vector<AccessOutcome> carry_out(const Batch& batch, std::span<std::byte* const> data, int file,
                                     std::span<std::byte> scratch);
// Size of an I/O thread's scratch memory.
inline constexpr std::size_t scratch_bytes = 1 << 20;

}  // namespace hocket::server
