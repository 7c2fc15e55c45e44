// The server's memory for data: so many bytes, and never more. What is given back is kept for the next one, for fresh
// memory costs more than the copy into it. One thread; the pool outlives its buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace hocket::server {

class BufferPool;

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), memory_(std::move(other.memory_)), bytes_(other.bytes_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer();

  explicit operator bool() const { return pool_ != nullptr; }
  std::span<std::byte> bytes() const { return {memory_.get(), bytes_}; }

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;  // that were asked for
};

class BufferPool {
 public:
  explicit BufferPool(std::int64_t bytes) : limit_(bytes) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // None (false) where there is no room. Precondition: 0 < bytes <= most_payload.
  Buffer take(std::int64_t bytes);
  std::int64_t in_use() const { return in_use_; }  // whole blocks
  std::int64_t limit() const { return limit_; }

 private:
  friend class Buffer;
  // Blocks are powers of 2.
  static constexpr unsigned least_power = 9;
  static constexpr unsigned most_power = 20;
  static unsigned power_of(std::size_t bytes);
  void give_back(std::unique_ptr<std::byte[]> memory, std::size_t bytes);
  void shed(std::int64_t bytes);

  std::int64_t limit_;
  std::int64_t in_use_ = 0;
  std::int64_t kept_ = 0;
  std::array<std::vector<std::unique_ptr<std::byte[]>>, most_power + 1> free_;
};

}  // namespace hocket::server
