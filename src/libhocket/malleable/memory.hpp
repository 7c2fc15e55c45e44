// Memory of a registered array. By default hocket allocates it: page-aligned, zeroed when allocated, returned to the
// system at once when freed. It comes from mmap instead of malloc, so that it can shrink and grow in place. A program
// may give a function that allocates instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hocket::runtime {

// The program's allocator, as hocket_malleable_allocator in malleable.h: like realloc.
struct Allocator {
  void* (*resize)(void* context, void* memory, std::int64_t bytes) = nullptr;  // nullptr: hocket's own
  void* context = nullptr;
};

// Owns one mapping, or one block of the program's allocator; movable. Not thread-safe: the program's allocator is
// called by the thread that calls.
class Memory {
 public:
  Memory() = default;
  // Allocates memory, zeroed unless the program allocates it. `bytes` may be 0; the result has an address all the same.
  // Returns an empty object (data() is nullptr) if memory has run out.
  static Memory allocate(std::int64_t bytes, Allocator by = {});

  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), by_(other.by_) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(by_, other.by_);
    return *this;
  }
  ~Memory();

  std::byte* data() const { return data_; }
  // Keeps the first `bytes` bytes and gives back the memory behind them. Hocket's own memory stays where it is.
  void shrink(std::int64_t bytes);
  // Enlarges the memory and keeps its bytes; the address may change. The kernel moves hocket's own pages without a
  // copy. Returns false if memory has run out; the old memory is then unchanged.
  bool grow(std::int64_t bytes);

 private:
  // Returns the bytes of the pages to map: at least one page.
  static std::size_t pages(std::int64_t bytes);
  bool resize_by_program(std::int64_t bytes);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;  // mapped or allocated bytes
  Allocator by_;
};

}  // namespace hocket::runtime
