// Memory that processes of one node share. A client of a server places data there, the server writes them to the file
// from there (or reads into there), and nothing is copied on the way; ranks of a job exchange theirs through it.
//
// One makes the segment (a memfd that cannot shrink, so that others never touch what is gone) and gives them its
// descriptor. Not thread-safe; nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/descriptor.hpp"

namespace hocket::transport {

// A mapping of a shared segment.
class Segment {
 public:
  // A new one. nullptr where the system gives none.
  static std::shared_ptr<Segment> make(std::int64_t bytes);
  // That of another process. nullptr where it is none of ours: it could shrink, or is shorter than `bytes`.
  static std::shared_ptr<Segment> map(const Fd& descriptor, std::int64_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  int descriptor() const { return descriptor_.get(); }

 private:
  Segment(std::span<std::byte> bytes, Fd descriptor) : bytes_(bytes), descriptor_(std::move(descriptor)) {}

  std::span<std::byte> bytes_;
  Fd descriptor_;  // of a new one
};

// Gives out parts of a segment, in whole pages; the first that fits.
class Arena {
 public:
  explicit Arena(std::shared_ptr<Segment> segment);

  std::span<std::byte> take(std::int64_t bytes);  // empty where none is left
  void give_back(std::span<std::byte> part);
  // Where in the segment the memory is, if it is.
  std::optional<std::int64_t> position(std::span<const std::byte> memory) const;
  const Segment& segment() const { return *segment_; }

 private:
  std::shared_ptr<Segment> segment_;
  std::map<std::int64_t, std::int64_t> free_;  // position → bytes; no two touch
};

// Memory of `ServerLink::stage`. It outlives the link.
class Staged {
 public:
  Staged() = default;
  Staged(std::span<std::byte> bytes, std::shared_ptr<Arena> arena) : bytes_(bytes), arena_(std::move(arena)) {}
  // Plain memory.
  explicit Staged(std::int64_t bytes);
  Staged(Staged&& other) noexcept : bytes_(std::exchange(other.bytes_, {})), arena_(std::move(other.arena_)) {}
  Staged& operator=(Staged&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(arena_, other.arena_);
    return *this;
  }
  ~Staged();

  std::span<std::byte> bytes() const { return bytes_; }
  bool is_shared() const { return arena_ != nullptr; }

 private:
  std::span<std::byte> bytes_;
  std::shared_ptr<Arena> arena_;
};

}  // namespace hocket::transport
