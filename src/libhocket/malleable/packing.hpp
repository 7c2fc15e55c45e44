// Brings the elements of each message together in memory: an exchange (exchange.hpp) moves one run of bytes between two
// ranks, but the elements of a message may lie in many places, such as those of a block-cyclic array. An implementation
// detail of redistribution.cpp. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "malleable/exchange.hpp"
#include "malleable/memory.hpp"
#include "malleable/redistribution.hpp"

namespace hocket::runtime {

// LocalCopies within this process, made in chunks so that messages make progress in between.
class LocalCopies {
 public:
  void add(std::byte* to, const std::byte* from, std::int64_t bytes) {
    if (bytes > 0) copies_.push_back({to, from, bytes});
  }
  // LocalCopies at most 1 MiB. Returns false if nothing was left.
  bool copy_some();

 private:
  struct LocalCopy {
    std::byte* to;
    const std::byte* from;
    std::int64_t bytes;
  };
  std::vector<LocalCopy> copies_;
  std::size_t next_ = 0;
  std::int64_t done_ = 0;  // bytes of the next copy
};

// The messages of several arrays, as an exchange moves them. A message whose elements lie in one place is sent from
// there and received there; the others need memory of the same size at each end, from pack() to unpack_some().
class Packing {
 public:
  explicit Packing(std::span<const ArrayTransfer> transfers) : transfers_(transfers) {}

  // LocalCopies what is sent from several places. Returns false if memory has run out.
  bool pack();
  std::span<const ExchangedArray> arrays() const { return arrays_; }
  // After all messages have arrived, puts the next of the received elements in their places; at most 1 MiB. Returns
  // false if nothing was left.
  bool unpack_some();

 private:
  bool pack_sends(const ArrayTransfer& transfer, ExchangedArray& array);
  bool make_room(const ArrayTransfer& transfer, ExchangedArray& array);
  std::byte* allocate(std::int64_t bytes);

  std::span<const ArrayTransfer> transfers_;
  std::vector<ExchangedArray> arrays_;
  std::vector<Memory> memory_;
  LocalCopies unpacking_;
};

}  // namespace hocket::runtime
