#include "malleable/packing.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hocket::runtime {
namespace {

bool is_scattered(const redistribute::Message& message) { return message.places.size() > 1; }

// Returns the bytes of the scattered messages, or of all messages.
std::int64_t bytes_of(const std::vector<redistribute::Message>& messages, std::int64_t element_bytes, bool all) {
  std::int64_t elements = 0;
  for (const redistribute::Message& m : messages)
    if (all || is_scattered(m)) elements += redistribute::count(m.places);
  return elements * element_bytes;
}

}  // namespace

bool LocalCopies::copy_some() {
  constexpr std::int64_t chunk = std::int64_t{1} << 20;
  if (next_ == copies_.size()) return false;
  for (std::int64_t left = chunk; left > 0 && next_ < copies_.size();) {
    const LocalCopy& copy = copies_[next_];
    const std::int64_t bytes = std::min(left, copy.bytes - done_);
    std::memcpy(copy.to + done_, copy.from + done_, static_cast<std::size_t>(bytes));
    left -= bytes;
    done_ += bytes;
    if (done_ < copy.bytes) break;
    done_ = 0;
    ++next_;
  }
  return true;
}

std::byte* Packing::allocate(std::int64_t bytes) {
  memory_.push_back(Memory::allocate(bytes));
  return memory_.back().data();
}

bool Packing::pack() {
  for (const ArrayTransfer& transfer : transfers_) {
    ExchangedArray& array = arrays_.emplace_back();
    if (!pack_sends(transfer, array) || !make_room(transfer, array)) return false;
  }
  return true;
}

// One memory holds all that is sent, because a window of the one-sided methods has one start.
bool Packing::pack_sends(const ArrayTransfer& transfer, ExchangedArray& array) {
  const auto& sends = transfer.plan.sends;
  const std::int64_t size = transfer.element_bytes;
  const bool packs = std::any_of(sends.begin(), sends.end(), is_scattered);
  array.sent_bytes = packs ? bytes_of(sends, size, true) : transfer.plan.before * size;
  std::byte* const packed = packs ? allocate(array.sent_bytes) : nullptr;
  if (packs && !packed) return false;
  array.sent = packs ? packed : transfer.from;
  std::int64_t at = 0;
  for (const redistribute::Message& m : sends) {
    const std::int64_t bytes = redistribute::count(m.places) * size;
    array.sends.push_back({m.peer, packs ? packed + at : transfer.from + m.places.front().first * size, bytes});
    for (const redistribute::ElementRange& place : m.places) {
      if (!packs) break;
      std::memcpy(packed + at, transfer.from + place.first * size, static_cast<std::size_t>(place.count() * size));
      at += place.count() * size;
    }
  }
  return true;
}

// Messages for one place are received there, the others in memory from which unpack_some() copies them.
bool Packing::make_room(const ArrayTransfer& transfer, ExchangedArray& array) {
  const auto& receives = transfer.plan.receives;
  const std::int64_t size = transfer.element_bytes;
  const std::int64_t scattered = bytes_of(receives, size, false);
  std::byte* next = scattered > 0 ? allocate(scattered) : nullptr;
  if (scattered > 0 && !next) return false;
  array.received = transfer.to;
  for (const redistribute::Message& m : receives) {
    const std::int64_t bytes = redistribute::count(m.places) * size;
    if (!is_scattered(m)) {
      array.receives.push_back({m.peer, transfer.to + m.places.front().first * size, bytes});
      continue;
    }
    array.receives.push_back({m.peer, next, bytes});
    for (const redistribute::ElementRange& place : m.places) {
      unpacking_.add(transfer.to + place.first * size, next, place.count() * size);
      next += place.count() * size;
    }
  }
  return true;
}

bool Packing::unpack_some() { return unpacking_.copy_some(); }

}  // namespace hocket::runtime
