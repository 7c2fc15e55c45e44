// Memory that processes of one node share. A client places data there, and the server writes them to the file from
// there (or reads into there) without a copy. Ranks of a job exchange data through it too.
//
// One process makes the segment and passes its descriptor to the others. The segment is a memfd that is sealed
// against shrinking, so that no process faults on memory that has been truncated. Not thread-safe; nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/kept_descriptor.hpp"

namespace hocket::transport {

// A mapping of a shared segment; it is unmapped when the object is destroyed.
class SharedSegment {
 public:
  // Makes a new segment. Returns nullptr if the system provides none.
  static std::shared_ptr<SharedSegment> make(std::int64_t bytes);
  // Maps another process's segment. Returns nullptr if it could shrink or is shorter than `bytes`.
  static std::shared_ptr<SharedSegment> map(const Fd& descriptor, std::int64_t bytes);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  // Returns its descriptor, or -1 if it was made by another process, or if the program has closed it.
  int descriptor() const { return descriptor_ && descriptor_.is_ours() ? descriptor_.get() : -1; }

 private:
  SharedSegment(std::span<std::byte> bytes, KeptFd descriptor) : bytes_(bytes), descriptor_(std::move(descriptor)) {}

  std::span<std::byte> bytes_;
  KeptFd descriptor_;  // of a segment made here; else empty
};

// Allocates parts of a segment in whole pages of 4 KiB, first fit. O(free parts).
class Arena {
 public:
  explicit Arena(std::shared_ptr<SharedSegment> segment);

  std::span<std::byte> take(std::int64_t bytes);  // empty if no part is large enough
  void give_back(std::span<std::byte> part);
  // Returns the offset of the memory in the segment; nothing if the memory is not part of it.
  std::optional<std::int64_t> position(std::span<const std::byte> memory) const;
  const SharedSegment& segment() const { return *segment_; }

 private:
  std::shared_ptr<SharedSegment> segment_;
  std::map<std::int64_t, std::int64_t> free_;  // offset → bytes of free parts; no two touch
};

// Memory from `ServerLink::stage`, returned when the object is destroyed. It may outlive the link.
class Staged {
 public:
  Staged() = default;
  Staged(std::span<std::byte> bytes, std::shared_ptr<Arena> arena) : bytes_(bytes), arena_(std::move(arena)) {}
  // Allocates plain memory; `bytes()` is empty if there is none.
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
