#include "server/storage.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

namespace hocket::server {
namespace {

// Average chunk length in bytes below which chunks are copied into one buffer first. For shorter ones an
// element of an I/O vector costs the kernel more than the copy.
constexpr std::int64_t short_chunk = 2048;

// Progress of an access.
struct Accessed {
  std::int64_t end = 0;  // offset in the file behind the last byte accessed
  int error = 0;
};

// Removes the first `done` bytes from the parts, after a short access.
std::span<iovec> rest_of(std::span<iovec> parts, std::size_t done) {
  while (!parts.empty() && done >= parts.front().iov_len) {
    done -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (!parts.empty()) {
    parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + done;
    parts.front().iov_len -= done;
  }
  return parts;
}

// Reads or writes the parts from offset `at` on: all of them, or up to an error or the end of the file.
Accessed access_parts(int file, bool writes, std::span<iovec> parts, std::int64_t at) {
  while (!parts.empty()) {
    const int count = static_cast<int>(std::min<std::size_t>(parts.size(), IOV_MAX));
    const ssize_t n = writes ? pwritev(file, parts.data(), count, at) : preadv(file, parts.data(), count, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {at, errno};
    if (n == 0) return {at, writes ? EIO : 0};  // end of the file for a read
    at += n;
    parts = rest_of(parts, static_cast<std::size_t>(n));
  }
  return {at, 0};
}

// Execution of one batch. It chooses for each extent between vectored I/O and the scratch buffer.
class StorageAccess {
 public:
  StorageAccess(const Batch& batch, std::span<std::byte* const> data, int file, std::span<std::byte> scratch)
      : batch_(batch), data_(data), file_(file), scratch_(scratch), outcomes_(batch.tickets.size()) {}

  std::vector<AccessOutcome> run() {
    for (const BatchExtent& extent : batch_.extents) {
      const auto chunks = std::span{batch_.chunks}.subspan(extent.first, extent.count);
      const bool is_fine = (extent.end - extent.at) / static_cast<std::int64_t>(extent.count) < short_chunk;
      if (extent.count == 1 || (extent.seamless && !is_fine)) {
        directly(chunks);
      } else {
        by_windows(extent, chunks);
      }
    }
    return std::move(outcomes_);
  }

 private:
  std::byte* memory_of(const RequestChunk& chunk) const { return data_[chunk.request] + chunk.data; }

  // Adds to the chunk's request what was accessed of the chunk's bytes in first … end. The bytes before
  // `accessed.end` were accessed.
  void tell(const RequestChunk& chunk, std::int64_t first, std::int64_t end, const Accessed& accessed) {
    first = std::max(first, chunk.at);
    end = std::min(end, chunk.end());
    AccessOutcome& outcome = outcomes_[chunk.request];
    outcome.bytes += std::clamp<std::int64_t>(accessed.end - first, 0, end - first);
    if (accessed.end < end && outcome.error == 0) outcome.error = accessed.error;
  }

  // Accesses neighbouring chunks with preadv or pwritev, without a copy.
  void directly(std::span<const RequestChunk> chunks) {
    while (!chunks.empty()) {
      const std::size_t count = std::min<std::size_t>(chunks.size(), parts_.size());
      const auto now = chunks.first(count);
      std::int64_t end = now.front().at;
      for (std::size_t i = 0; i < count; ++i) {
        parts_[i] = {memory_of(now[i]), static_cast<std::size_t>(now[i].length)};
        end = now[i].end();
      }
      const Accessed accessed = access_parts(file_, batch_.writes, std::span{parts_}.first(count), now.front().at);
      for (const RequestChunk& chunk : now) tell(chunk, now.front().at, end, accessed);
      chunks = chunks.subspan(count);
    }
  }

  // Accesses an extent through the scratch buffer, one buffer's size at a time. Writes come here only without gaps.
  void by_windows(const BatchExtent& extent, std::span<const RequestChunk> chunks) {
    for (std::int64_t first = extent.at; first < extent.end;) {
      const std::int64_t end = std::min(extent.end, first + static_cast<std::int64_t>(scratch_.size()));
      while (!chunks.empty() && chunks.front().end() <= first) chunks = chunks.subspan(1);
      if (batch_.writes) copy(chunks, first, end);
      iovec part{scratch_.data(), static_cast<std::size_t>(end - first)};
      const Accessed accessed = access_parts(file_, batch_.writes, {&part, 1}, first);
      if (!batch_.writes) copy(chunks, first, std::min(end, accessed.end));
      for (const RequestChunk& chunk : chunks) {
        if (chunk.at >= end) break;
        if (chunk.end() > first) tell(chunk, first, end, accessed);
      }
      first = end;
    }
  }

  // Copies between the chunks' memory and the scratch buffer, whose first byte has offset `first` in the file.
  void copy(std::span<const RequestChunk> chunks, std::int64_t first, std::int64_t end) {
    for (const RequestChunk& chunk : chunks) {
      if (chunk.at >= end) break;
      const std::int64_t from = std::max(first, chunk.at);
      const std::int64_t to = std::min(end, chunk.end());
      if (from >= to) continue;
      std::byte* own = memory_of(chunk) + (from - chunk.at);
      std::byte* window = scratch_.data() + (from - first);
      const auto bytes = static_cast<std::size_t>(to - from);
      std::memcpy(batch_.writes ? window : own, batch_.writes ? own : window, bytes);
    }
  }

  const Batch& batch_;
  std::span<std::byte* const> data_;
  int file_;
  std::span<std::byte> scratch_;
  std::vector<AccessOutcome> outcomes_;
  std::array<iovec, IOV_MAX> parts_{};
};

}  // namespace

OpenedFile open_beneath(int directory, const char* path, int flags) {
  // O_NONBLOCK: opening a FIFO must not block the server before the type is checked.
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  Fd file{static_cast<int>(syscall(SYS_openat2, directory, path, &how, sizeof how))};
  if (!file) return {Fd{}, errno};
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return {Fd{}, errno};
  if (!S_ISREG(status.st_mode)) return {Fd{}, EINVAL};
  return {std::move(file), 0};
}

std::vector<AccessOutcome> carry_out(const Batch& batch, std::span<std::byte* const> data, int file,
                                     std::span<std::byte> scratch) {
  return StorageAccess{batch, data, file, scratch}.run();
}

}  // namespace hocket::server
