// Finds the device of the file behind a descriptor, for the wrappers of POSIX I/O. The device is looked up once, until
// the descriptor is closed or refers to another file. Who learns a better place for the file may note it instead.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hocket::runtime::posix {

// A cache of device numbers by descriptor. Thread-safe and lock-free. Descriptors that are no regular file are looked
// up each time. If a file is closed in another way than by a wrapped function of libc, its stale entry stays until the
// number is closed again.
class Descriptors {
 public:
  // Returns the device, or nothing if the descriptor is closed or no regular file. May change errno.
  std::optional<dev_t> device_of(int fd) {
    std::atomic<std::uint64_t>* known = fd >= 0 && fd < size ? &known_[static_cast<std::size_t>(fd)] : nullptr;
    if (const std::uint64_t kept = known ? known->load(std::memory_order_relaxed) : unknown; kept != unknown)
      return kept - first_device;
    struct stat file {};
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
    if (known) known->store(file.st_dev + first_device, std::memory_order_relaxed);
    return file.st_dev;
  }

  // Notes that the file is at this place, if the descriptor is known to be on the device. Async-signal-safe.
  void settle(int fd, dev_t device, dev_t place) {
    if (fd < 0 || fd >= size) return;
    std::uint64_t kept = device + first_device;
    known_[static_cast<std::size_t>(fd)].compare_exchange_strong(kept, place + first_device, std::memory_order_relaxed);
  }

  // Drops the entries from `first` to `last`, both included. Call it when they are closed or refer to other files.
  // Async-signal-safe.
  void forget(unsigned first, unsigned last) {
    for (unsigned fd = first; fd <= last && fd < size; ++fd) known_[fd].store(unknown, std::memory_order_relaxed);
  }

 private:
  static constexpr int size = 1024;  // larger descriptors are looked up each time
  static constexpr std::uint64_t unknown = 0;
  static constexpr std::uint64_t first_device = 1;  // added to each device, so that device 0 is not `unknown`

  std::array<std::atomic<std::uint64_t>, size> known_{};
};

}  // namespace hocket::runtime::posix
