// The files of this process of which I/O servers may hold bytes that the file system does not have yet, for accesses
// that know no MPI_File: POSIX calls, and other openings of the same file.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>

#include "transport/file_key.hpp"

namespace hocket::runtime {

inline FileKey key_of(const struct stat& file) { return hocket::key_of(file.st_dev, file.st_ino); }

// A table of fixed size. Reading takes no lock and is async-signal-safe; one thread at a time may write.
class HeldFiles {
 public:
  static constexpr std::size_t capacity = 32;

  // True if servers may hold bytes of the file; always, if there are more such files than the table has room for.
  bool may_be(FileKey key) const {
    const auto is_key = [&](const auto& slot) { return slot.load(std::memory_order_acquire) == key; };
    return more_.load(std::memory_order_acquire) || std::any_of(slots_.begin(), slots_.end(), is_key);
  }

  // Makes these the files, each key once. A key that was in the table and stays is found throughout.
  void replace(std::span<const FileKey> keys) {
    if (keys.size() > capacity) return more_.store(true, std::memory_order_release);
    for (auto& slot : slots_)
      if (std::find(keys.begin(), keys.end(), slot.load()) == keys.end()) slot.store(no_file);
    for (const FileKey key : keys)
      if (!has(key)) std::find(slots_.begin(), slots_.end(), no_file)->store(key, std::memory_order_release);
    more_.store(false, std::memory_order_release);
  }

 private:
  bool has(FileKey key) const { return std::find(slots_.begin(), slots_.end(), key) != slots_.end(); }

  std::array<std::atomic<FileKey>, capacity> slots_{};
  std::atomic<bool> more_ = false;
};
inline constinit HeldFiles held_files;

}  // namespace hocket::runtime
