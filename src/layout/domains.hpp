// File domains: which aggregator writes and reads which part of a file.
#pragma once

#include "layout/node.hpp"

namespace hocket::layout {

// An interval of a file in one part for each aggregator, in order. Bounds between parts are multiples of the block, so
// that no block (a stripe of the file system, a page) is of two aggregators; parts differ by one block at most, the
// larger ones first. With more aggregators than blocks the last ones have empty parts.
class Domains {
 public:
  // Fails where the interval is not within 0 … limit, or there is no aggregator or no block.
  static Result<Domains> make(Interval file, int aggregators, std::int64_t block_bytes);

  int aggregators() const { return aggregators_; }
  Interval file() const { return file_; }
  // Precondition: 0 <= aggregator < aggregators().
  Interval domain(int aggregator) const;
  // Whose domain the offset is in. Precondition: within file().
  int owner(std::int64_t offset) const;

 private:
  Interval file_;
  int aggregators_ = 1;
  std::int64_t block_ = 1;
  std::int64_t first_block_ = 0;
  std::int64_t share_ = 0;   // blocks of each aggregator
  std::int64_t larger_ = 0;  // aggregators with one block more
};

}  // namespace hocket::layout
