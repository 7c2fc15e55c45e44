#include "server/buffer_pool.hpp"

#include <algorithm>
#include <bit>

namespace hocket::server {

Buffer::~Buffer() {
  if (pool_ != nullptr) pool_->give_back(std::move(memory_), bytes_);
}

Reservation::~Reservation() {
  if (pool_ != nullptr) pool_->reserved_ -= bytes_;
}

Reservation BufferPool::reserve(std::int64_t bytes) {
  Reservation reservation;
  if (bytes > most_reserved() - reserved_) return reservation;
  reserved_ += bytes;
  shed(in_use_ + kept_ + reserved_ - limit_);
  reservation.pool_ = this;
  reservation.bytes_ = bytes;
  return reservation;
}

unsigned BufferPool::power_of(std::size_t bytes) {
  return std::max(least_power, static_cast<unsigned>(std::bit_width(bytes - 1)));
}

Buffer BufferPool::take(std::int64_t bytes) {
  Buffer buffer;
  const unsigned power = power_of(static_cast<std::size_t>(bytes));
  const std::int64_t block = std::int64_t{1} << power;
  if (in_use_ + reserved_ + block > limit_) return buffer;
  auto& free = free_[power];
  if (!free.empty()) {
    buffer.memory_ = std::move(free.back());
    free.pop_back();
    kept_ -= block;
  } else {
    // Unused blocks of other sizes count towards the limit too.
    shed(in_use_ + kept_ + reserved_ + block - limit_);
    buffer.memory_.reset(new std::byte[static_cast<std::size_t>(block)]);  // not zeroed: the data overwrite it
  }
  in_use_ += block;
  buffer.bytes_ = static_cast<std::size_t>(bytes);
  buffer.pool_ = this;
  return buffer;
}

void BufferPool::give_back(std::unique_ptr<std::byte[]> memory, std::size_t bytes) {
  const unsigned power = power_of(bytes);
  const std::int64_t block = std::int64_t{1} << power;
  in_use_ -= block;
  kept_ += block;
  free_[power].push_back(std::move(memory));
}

// Frees at least that many bytes of unused blocks, as far as there are any. The largest blocks go first.
void BufferPool::shed(std::int64_t bytes) {
  for (unsigned power = most_power; power >= least_power; --power) {
    while (bytes > 0 && !free_[power].empty()) {
      free_[power].pop_back();
      kept_ -= std::int64_t{1} << power;
      bytes -= std::int64_t{1} << power;
    }
  }
}

}  // namespace hocket::server
