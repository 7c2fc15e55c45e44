// The compact form of a layout: a tree (with shared branches) of formulas that place runs of bytes, in data order.
//
// A strided pattern stays one node however often it repeats; only what is irregular is held as a table. A node is
// anchored: its first byte in data order is at address 0, so that equal patterns are equal wherever they lie. Nodes are
// made by the functions here alone, which bring them into a normal form: equal layouts become equal nodes where that is
// cheap to see, and never are two neighbours in data order two runs of one table or vector.
// Pure; nodes do not change once made, and may be used by several threads. Nothing throws but for memory that runs out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"

namespace hocket::layout {

// Bytes first … end - 1, of data or of a file.
struct Interval {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - first; }
  bool operator==(const Interval&) const = default;
};

// No size, and no address in either direction, is larger: so that the sum of two of them is a number.
inline constexpr std::int64_t limit = (std::int64_t{1} << 62) - 1;
inline constexpr int max_depth = 64;  // levels of a tree

__extension__ typedef __int128 Wide;  // what a product of two 64-bit numbers needs
constexpr bool fits(Wide number) { return number >= -limit && number <= limit; }

struct Node;
using NodePtr = std::shared_ptr<const Node>;

enum class Kind : std::uint8_t {
  run,       // `size` bytes
  vector,    // `count` times the child, `stride` apart
  blocks,    // `count` runs, placed by a table
  sequence,  // `count` nodes, placed by a table
};

struct Node {
  Kind kind = Kind::run;
  bool ordered = true;        // no byte lies before or on one that comes earlier in the data
  int depth = 1;              // levels, this one included
  std::int64_t size = 0;      // bytes of data, above 0
  std::int64_t low = 0;       // addresses: low … high - 1; ordered: low = 0
  std::int64_t high = 0;      //
  std::int64_t end = 0;       // address behind the last byte of the data; ordered: end = high
  std::int64_t segments = 1;  // runs, where a run that begins at the end of the one before is counted with it
  std::uint64_t hash = 0;     // equal for equal nodes

  std::int64_t count = 1;             // of children, runs or entries
  std::int64_t stride = 0;            // vector
  std::int64_t block = 0;             // blocks: bytes of each, or 0: they differ
  NodePtr child;                      // vector
  std::vector<NodePtr> children;      // sequence
  std::vector<std::int64_t> at;       // blocks, sequence: address of each entry; the first is 0
  std::vector<std::int64_t> before;   // sequence, blocks that differ: data before each entry, and all of it
  std::vector<std::int64_t> started;  // sequence: segments begun before each entry, and all of them

  // Blocks: bytes of block i, and of data before it.
  std::int64_t length(std::int64_t i) const {
    return block != 0 ? block : before[static_cast<std::size_t>(i) + 1] - before[static_cast<std::size_t>(i)];
  }
  // Not for a run: data before the i-th child, block or entry.
  std::int64_t data_before(std::int64_t i) const {
    if (kind == Kind::vector) return i * child->size;
    return block != 0 ? i * block : before[static_cast<std::size_t>(i)];
  }
  // Not for a run: which child, block or entry holds byte `data` of the data. Precondition: 0 <= data < size.
  std::int64_t entry_of(std::int64_t data) const {
    if (kind == Kind::vector) return data / child->size;
    if (block != 0) return data / block;
    return std::upper_bound(before.begin(), before.end(), data) - before.begin() - 1;
  }
  // Vector and sequence: the i-th child, and its address.
  const Node& part(std::int64_t i) const {
    return kind == Kind::vector ? *child : *children[static_cast<std::size_t>(i)];
  }
  // Not for a run: address of the i-th child, block or entry.
  std::int64_t address(std::int64_t i) const {
    return kind == Kind::vector ? i * stride : at[static_cast<std::size_t>(i)];
  }
  // Vector and sequence: entry i begins where entry i - 1 ends. Precondition: i >= 1.
  bool joined(std::int64_t i) const {
    if (kind == Kind::vector) return child->end == stride;
    return address(i) == address(i - 1) + part(i - 1).end;
  }
};

// A node at an address; without a node: no data.
struct Placed {
  NodePtr node;
  std::int64_t at = 0;
};

bool same(const Node& a, const Node& b);
inline bool same(const NodePtr& a, const NodePtr& b) { return a == b || (a && b && same(*a, *b)); }

// All fail where a size or an address would go beyond `limit`, or the tree beyond `max_depth`.
// Precondition: 0 <= bytes <= limit.
Placed make_run(std::int64_t bytes);
// `count` times the child, `stride` bytes apart. Precondition: count >= 0.
Result<Placed> make_vector(std::int64_t count, std::int64_t stride, const Placed& child);
// Runs of `lengths` bytes. Precondition: as many addresses as lengths, lengths >= 0, addresses fit.
Result<Placed> make_blocks(std::vector<std::int64_t> at, std::vector<std::int64_t> lengths);
// One behind the other in the data; entries without a node are left out.
Result<Placed> make_sequence(const std::vector<Placed>& entries);
// The same of the entries of a node that was in normal form, all with nodes: takes memory in proportion to their
// number.
Result<Placed> join(const std::vector<Placed>& entries);

}  // namespace hocket::layout
