// Walks over an interval of the data of a layout, in data order, without unrolling it.
//
// A Walk yields strips: runs of equal length at equal distances, so that a strided pattern is one step, not a million.
// Segments yields single runs, where neighbours that touch are one. Both are lazy, can be copied, and keep what they
// walk over alive; each is for one thread at a time. A new walk finds its place in O(depth · log).
#pragma once

#include <array>
#include <optional>

#include "layout/node.hpp"

namespace hocket::layout {

// `count` runs of `length` bytes, the first at address `at`, each `stride` behind the one before; their data lie one
// behind the other from byte `data` of the data on.
struct Strip {
  std::int64_t data = 0;
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::int64_t stride = 0;  // count == 1: without meaning
  std::int64_t count = 0;
  std::int64_t bytes() const { return length * count; }
  bool operator==(const Strip&) const = default;
};

class Walk {
 public:
  Walk() = default;  // over nothing
  // Precondition: the interval lies within the data.
  Walk(Placed placed, Interval data);

  std::int64_t position() const { return data_; }  // the next byte of the data
  std::int64_t left() const { return end_ - data_; }
  // Goes on at byte `data` of the data. Precondition: not beyond the end of the interval, and not below 0.
  void seek(std::int64_t data);
  // The next bytes, as many as one strip holds and at most `most`. Precondition: left() > 0, most > 0.
  Strip next(std::int64_t most = limit);

 private:
  struct Frame {  // the way down: entry i of a node
    const Node* node;
    std::int64_t at;
    std::int64_t i;
  };

  void descend(const Node* node, std::int64_t at, std::int64_t data);
  void advance(std::int64_t blocks);  // in the leaf; to the next leaf where it is through

  Placed root_;
  std::int64_t data_ = 0;
  std::int64_t end_ = 0;
  // The leaf: a run, a table of runs or a vector of runs; its block i, of which `into_` bytes are done.
  const Node* leaf_ = nullptr;
  std::int64_t leaf_at_ = 0;
  std::int64_t i_ = 0;
  std::int64_t into_ = 0;
  int depth_ = 0;
  std::array<Frame, max_depth> frames_{};  // the first depth_ of them
};

struct Segment {
  std::int64_t data = 0;
  std::int64_t at = 0;
  std::int64_t length = 0;
  bool operator==(const Segment&) const = default;
};

class Segments {
 public:
  explicit Segments(Walk walk) : walk_(std::move(walk)) { pull(); }
  // The next one; nothing at the end.
  std::optional<Segment> next() {
    if (ahead_.length == 0) return std::nullopt;
    Segment segment = ahead_;
    while (pull() && ahead_.at == segment.at + segment.length) segment.length += ahead_.length;
    return segment;
  }

 private:
  // The next run becomes ahead_; false and a length of 0 at the end.
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
  Strip strip_;  // what is left of it
  Segment ahead_;
};

}  // namespace hocket::layout
