// Walks over a range of a layout's data, in data order, without expanding it.
//
// A Walk yields strips: runs of equal length at equal distances, so a strided pattern is one step instead of a
// million. Segments yields single runs and joins neighbours that touch. Both are lazy and can be copied. They keep
// the nodes alive, and each is for one thread at a time. A new walk finds its position in O(depth · log).
#pragma once

#include <array>
#include <optional>

#include "layout/node.hpp"

namespace hocket::layout {

// `count` runs of `length` bytes. The first one is at address `at`, each next one `stride` bytes further. Their data
// lie one behind the other, from byte `data` of the data on.
struct Strip {
  std::int64_t data = 0;
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::int64_t stride = 0;  // undefined if count is 1
  std::int64_t count = 0;
  std::int64_t bytes() const { return length * count; }
  bool operator==(const Strip&) const = default;
};

// A position in the data, and the path to it in the tree.
class Walk {
 public:
  Walk() = default;  // empty
  // Precondition: the range lies within the data.
  Walk(Placed placed, Extent data);

  std::int64_t position() const { return data_; }  // the next byte of the data
  std::int64_t left() const { return end_ - data_; }
  // Moves to byte `data` of the data. Precondition: 0 <= data, and not beyond the end of the range.
  void seek(std::int64_t data);
  // Returns the next bytes: as many as one strip can describe, and at most `most`. Precondition: left() > 0, most >
  // 0.
  Strip next(std::int64_t most = limit);

 private:
  struct Frame {  // one level of the path: entry i of a node at an address
    const TypeNode* node;
    std::int64_t at;
    std::int64_t i;
  };

  // Finds the leaf below `node` that contains byte `data` of the node's data.
  void descend(const TypeNode* node, std::int64_t at, std::int64_t data);
  void advance(std::int64_t blocks);  // within the leaf, or to the next one

  Placed root_;
  std::int64_t data_ = 0;
  std::int64_t end_ = 0;
  // The current leaf (a run, a table of runs or a vector of runs), its block i_, and the bytes of that block already
  // done.
  const TypeNode* leaf_ = nullptr;
  std::int64_t leaf_at_ = 0;
  std::int64_t i_ = 0;
  std::int64_t into_ = 0;
  int depth_ = 0;
  std::array<Frame, max_depth> frames_{};  // the first depth_ are in use
};

// One contiguous run: `length` bytes of data from byte `data` on, at address `at`.
struct MappedExtent {
  std::int64_t data = 0;
  std::int64_t at = 0;
  std::int64_t length = 0;
  bool operator==(const MappedExtent&) const = default;
};

// Iterates over the runs of a walk, one at a time.
class Segments {
 public:
  explicit Segments(Walk walk) : walk_(std::move(walk)) { pull(); }
  // Returns the next run; nothing at the end.
  std::optional<MappedExtent> next() {
    if (ahead_.length == 0) return std::nullopt;
    MappedExtent segment = ahead_;
    while (pull() && ahead_.at == segment.at + segment.length) segment.length += ahead_.length;
    return segment;
  }

 private:
  // Moves the next run to ahead_. Returns false at the end, where ahead_.length becomes 0.
  bool pull() {
    if (strip_.count == 0) {
      if (walk_.left() == 0) {
        ahead_.length = 0;
        return false;
      }
      strip_ = walk_.next();
    }
    ahead_ = {strip_.data, strip_.at, strip_.length};
    strip_.data += strip_.length;
    strip_.at += strip_.stride;
    --strip_.count;
    return true;
  }

  Walk walk_;
  Strip strip_;  // the rest of the current one
  MappedExtent ahead_;
};

}  // namespace hocket::layout
