#include "malleable/memory.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace hocket::runtime {

std::size_t Memory::pages(std::int64_t bytes) {
  constexpr std::size_t page = 4096;
  return (static_cast<std::size_t>(bytes) / page + 1) * page;
}

bool Memory::resize_by_program(std::int64_t bytes) {
  const std::int64_t needed = std::max<std::int64_t>(1, bytes);  // 0 would free it
  void* const data = by_.resize(by_.context, data_, needed);
  if (!data) return false;
  data_ = static_cast<std::byte*>(data);
  size_ = static_cast<std::size_t>(needed);
  return true;
}

Memory Memory::allocate(std::int64_t bytes, Allocator by) {
  if (by.resize) {
    Memory memory;
    memory.by_ = by;
    memory.resize_by_program(bytes);
    return memory;
  }
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const std::size_t size = pages(bytes);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Memory memory;
  if (data == MAP_FAILED) return memory;
  // Without huge pages, the first touch of new memory takes as long as the data need to arrive.
  if (size >= 2 * huge_page) madvise(data, size, MADV_HUGEPAGE);
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_ = size;
  return memory;
}

void Memory::shrink(std::int64_t bytes) {
  if (by_.resize) {
    if (static_cast<std::size_t>(bytes) < size_) resize_by_program(bytes);
    return;
  }
  const std::size_t size = pages(bytes);
  if (size >= size_ || munmap(data_ + size, size_ - size) != 0) return;
  size_ = size;
}

bool Memory::grow(std::int64_t bytes) {
  if (by_.resize) return static_cast<std::size_t>(bytes) <= size_ || resize_by_program(bytes);
  const std::size_t size = pages(bytes);
  if (size <= size_) return true;
  void* data = mremap(data_, size_, size, MREMAP_MAYMOVE);
  if (data == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(data);
  size_ = size;
  return true;
}

Memory::~Memory() {
  if (data_ && by_.resize)
    by_.resize(by_.context, data_, 0);
  else if (data_)
    munmap(data_, size_);
}

}  // namespace hocket::runtime
