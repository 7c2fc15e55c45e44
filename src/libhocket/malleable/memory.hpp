// Memory of a registered array: page-aligned, zeroed when allocated, returned to the system at once when freed. It
// comes from mmap instead of malloc, so that it can shrink and grow in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hocket::runtime {

// Owns one mapping; movable. Not thread-safe.
class Memory {
 public:
  Memory() = default;
  // Allocates zeroed memory. `bytes` may be 0; the result has an address all the same. Returns an empty object (data()
  // is nullptr) if memory has run out.
  static Memory allocate(std::int64_t bytes);

  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Memory();

  std::byte* data() const { return data_; }
  // Keeps the first `bytes` bytes at their address and returns the pages behind them to the system.
  void shrink(std::int64_t bytes);
  // Enlarges the memory; the address may change, but the kernel moves the pages without a copy. New pages are zeroed.
  // Returns false if memory has run out; the old memory is then unchanged.
  bool grow(std::int64_t bytes);

 private:
  // Returns the bytes of the pages to map: at least one page.
  static std::size_t pages(std::int64_t bytes);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;  // mapped bytes
};

}  // namespace hocket::runtime
