// The server's memory for data: a pool with a fixed limit. The pool keeps returned blocks for reuse, because faulting
// in fresh memory costs more than the copy into it. One thread; the pool must outlive its buffers.
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

// Memory from the pool, which returns to it when the buffer is destroyed. A default-constructed buffer is empty
// (false).
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
  std::size_t bytes_ = 0;  // size that was requested
};

// A part of a pool's limit that something else than data takes. It returns when the object is destroyed. A
// default-constructed one is empty (false).
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation();

  explicit operator bool() const { return pool_ != nullptr; }
  std::int64_t bytes() const { return bytes_; }

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  std::int64_t bytes_ = 0;
};

// Allocates blocks whose sizes are powers of two from 512 bytes to 1 MiB; the limit counts whole blocks.
class BufferPool {
 public:
  explicit BufferPool(std::int64_t bytes) : limit_(bytes) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Returns an empty buffer if there is no room. Precondition: 0 < bytes <= most_payload. The memory is not zeroed.
  Buffer take(std::int64_t bytes);
  // Sets bytes of the limit aside for what is no data. Returns an empty reservation if all of them would exceed a
  // quarter of the limit, so that data always have room.
  Reservation reserve(std::int64_t bytes);
  std::int64_t most_reserved() const { return limit_ / 4; }
  std::int64_t in_use() const { return in_use_; }  // bytes of whole blocks
  std::int64_t limit() const { return limit_; }

 private:
  friend class Buffer;
  friend class Reservation;
  // Exponents of the smallest and the largest block.
  static constexpr unsigned least_power = 9;
  static constexpr unsigned most_power = 20;
  static unsigned power_of(std::size_t bytes);
  void give_back(std::unique_ptr<std::byte[]> memory, std::size_t bytes);
  void shed(std::int64_t bytes);

  std::int64_t limit_;
  std::int64_t in_use_ = 0;                                                     // bytes in buffers
  std::int64_t reserved_ = 0;                                                   // bytes of reservations
  std::int64_t kept_ = 0;                                                       // bytes in `free_`
  std::array<std::vector<std::unique_ptr<std::byte[]>>, most_power + 1> free_;  // unused blocks by exponent
};

}  // namespace hocket::server
