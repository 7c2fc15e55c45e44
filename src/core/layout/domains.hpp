// File domains of two-phase I/O: they say which aggregator accesses which part of a file. Pure.
#pragma once

#include "layout/node.hpp"

namespace hocket::layout {

// An extent of a file, divided into one part for each aggregator, in order. Bounds between parts are multiples of the
// block, so that no block (a stripe of the file system, a page) belongs to two aggregators. The numbers of blocks
// differ by one at most; larger parts come first. If there are more aggregators than blocks, the last ones have empty
// parts.
class Domains {
 public:
  // Fails if the extent is not within 0 … limit, or if `aggregators` or `block_bytes` is below 1.
  static Result<Domains> make(Extent file, int aggregators, std::int64_t block_bytes);

  int aggregators() const { return aggregators_; }
  Extent file() const { return file_; }
  // Returns the part of an aggregator. Precondition: 0 <= aggregator < aggregators().
  Extent domain(int aggregator) const;
  // Returns the aggregator whose part contains the offset. Precondition: the offset is within file().
  int owner(std::int64_t offset) const;

 private:
  Extent file_;
  int aggregators_ = 1;
  std::int64_t block_ = 1;
  std::int64_t first_block_ = 0;  // number of the block that contains the first byte
  std::int64_t share_ = 0;        // blocks of each aggregator, rounded down
  std::int64_t larger_ = 0;       // number of aggregators with one block more
};

}  // namespace hocket::layout
