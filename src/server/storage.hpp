// The accesses to the file system. Nothing here knows of clients. Thread-safe; errors are numbers of errno.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "server/scheduler.hpp"

namespace hocket::server {

// Opens what is at `path` in the directory, and nothing outside of it (openat2, RESOLVE_BENEATH): no link, no ".."
// leads out. `flags`: of open(2). Only regular files (EINVAL). EXDEV: not in the directory.
struct Opened {
  Fd file;
  int error = 0;
};
Opened open_beneath(int directory, const char* path, int flags);

// What became of one request.
struct Outcome {
  int error = 0;           // the first of its own bytes
  std::int64_t bytes = 0;  // read, up to the end of the file; or written
};

// Carries out a batch: reads or writes each stretch, with as few calls as its fragments allow. A short access is
// continued; an error concerns those requests whose bytes it kept from being accessed, and what is left of the batch is
// tried all the same. `data`: of each request of the batch. `scratch`: memory for what is broken up too finely.
std::vector<Outcome> carry_out(const Batch& batch, std::span<std::byte* const> data, int file,
                               std::span<std::byte> scratch);
inline constexpr std::size_t scratch_bytes = 1 << 20;

}  // namespace hocket::server
