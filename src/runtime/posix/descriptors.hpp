// On which device the file of a descriptor is: looked up once, until the descriptor is closed or becomes another's.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hocket::runtime::posix {

// Thread-safe and lock-free. What is closed behind its back is taken for what it was.
class Descriptors {
 public:
  // Nothing where it is no regular file, or closed. May change errno.
  std::optional<dev_t> device_of(int fd) {
    std::atomic<std::uint64_t>* known = fd >= 0 && fd < size ? &known_[static_cast<std::size_t>(fd)] : nullptr;
    std::uint64_t what = known ? known->load(std::memory_order_relaxed) : unknown;
    if (what == unknown) {
      struct stat file {};
      if (fstat(fd, &file) != 0) return std::nullopt;
      what = S_ISREG(file.st_mode) ? file.st_dev + first_device : no_file;
      if (known) known->store(what, std::memory_order_relaxed);
    }
    return what == no_file ? std::nullopt : std::optional<dev_t>(what - first_device);
  }

  // Before they are closed, or become another's. Async-signal-safe.
  void forget(unsigned first, unsigned last) {
    for (unsigned fd = first; fd <= last && fd < size; ++fd) known_[fd].store(unknown, std::memory_order_relaxed);
  }

 private:
  static constexpr int size = 1024;  // of programs with more, those above are looked up each time
  static constexpr std::uint64_t unknown = 0;
  static constexpr std::uint64_t no_file = 1;
  static constexpr std::uint64_t first_device = 2;

  std::array<std::atomic<std::uint64_t>, size> known_{};
};

}  // namespace hocket::runtime::posix
