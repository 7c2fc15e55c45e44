// On which device the file of a descriptor is: looked up once, until the descriptor is closed or becomes another's.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hocket::runtime::posix {

// Thread-safe and lock-free. What is no file is looked up each time. A file that is closed by none of libc's functions
// that we wrap is taken for open until its number is closed again.
class Descriptors {
 public:
  // Nothing where it is no regular file, or closed. May change errno.
  std::optional<dev_t> device_of(int fd) {
    std::atomic<std::uint64_t>* known = fd >= 0 && fd < size ? &known_[static_cast<std::size_t>(fd)] : nullptr;
    if (const std::uint64_t kept = known ? known->load(std::memory_order_relaxed) : unknown; kept != unknown)
      return kept - first_device;
    struct stat file {};
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
    if (known) known->store(file.st_dev + first_device, std::memory_order_relaxed);
    return file.st_dev;
  }

  // When they are closed, or become another's. Async-signal-safe.
  void forget(unsigned first, unsigned last) {
    for (unsigned fd = first; fd <= last && fd < size; ++fd) known_[fd].store(unknown, std::memory_order_relaxed);
  }

 private:
  static constexpr int size = 1024;  // of programs with more, those above are looked up each time
  static constexpr std::uint64_t unknown = 0;
  static constexpr std::uint64_t first_device = 1;

  std::array<std::atomic<std::uint64_t>, size> known_{};
};

}  // namespace hocket::runtime::posix
