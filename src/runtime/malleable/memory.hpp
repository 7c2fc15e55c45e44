// Memory of a registered array: zeroed, aligned to a page, given back to the system at once when it is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hocket::runtime {

class Memory {
 public:
  Memory() = default;
  // `bytes` may be 0: there is an address all the same. Empty (data() == nullptr) where memory has run out.
  static Memory allocate(std::int64_t bytes);

  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Memory();

  std::byte* data() const { return data_; }
  // Keeps the first `bytes` bytes where they are and gives the rest back.
  void shrink(std::int64_t bytes);
  // Makes it larger, zeroed behind what is there; the address may change, the bytes are not copied. False: no memory.
  bool grow(std::int64_t bytes);

 private:
  static std::size_t pages(std::int64_t bytes);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hocket::runtime
