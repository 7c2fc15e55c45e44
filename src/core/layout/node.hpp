// The compact form of a layout: a tree of formulas that place runs of bytes, in data order. Branches may be shared.
//
// A strided pattern is one node, whatever its number of repetitions; only irregular patterns need tables. A node is
// anchored: its first byte in data order has address 0, so equal patterns are equal nodes wherever they lie. Nodes
// are made only by the functions below, which bring them into a normal form. Equal layouts become equal nodes if that
// is cheap to detect. Two neighbours in data order are never two runs of one table or vector.
//
// Pure. Nodes are immutable, so several threads may use them. Nothing throws, except when memory runs out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"

namespace hocket::layout {

// A range of bytes, of data or of a file: first … end - 1.
struct Extent {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - first; }
  bool operator==(const Extent&) const = default;
};

// Bound on sizes, and on addresses in either direction, so that the sum of two of them does not overflow.
inline constexpr std::int64_t limit = (std::int64_t{1} << 62) - 1;
inline constexpr int max_depth = 64;  // levels of a tree

__extension__ typedef __int128 Wide;  // holds the product of two 64-bit numbers
constexpr bool fits(Wide number) { return number >= -limit && number <= limit; }

struct TypeNode;
using NodePtr = std::shared_ptr<const TypeNode>;

// The form of a node.
enum class NodeKind : std::uint8_t {
  run,       // `size` contiguous bytes
  vector,    // `count` repetitions of the child, `stride` bytes apart
  blocks,    // `count` runs at the addresses of a table
  sequence,  // `count` children at the addresses of a table
};

// A node with its derived values, which make the queries of measure.hpp fast. Fields that a kind does not use keep
// their defaults. Addresses are relative to the node's first byte in data order.
struct TypeNode {
  NodeKind kind = NodeKind::run;
  bool ordered = true;        // each byte lies behind all bytes that come earlier in the data
  int depth = 1;              // levels of the tree below, including this one
  std::int64_t size = 0;      // bytes of data; above 0
  std::int64_t low = 0;       // lowest address; 0 if ordered
  std::int64_t high = 0;      // address behind the highest byte
  std::int64_t end = 0;       // address behind the last byte in data order; `high` if ordered
  std::int64_t segments = 1;  // contiguous runs in data order; runs that touch count once
  std::uint64_t hash = 0;     // equal for equal nodes

  std::int64_t count = 1;             // children, runs or entries
  std::int64_t stride = 0;            // vector: bytes from child to child
  std::int64_t block = 0;             // blocks: bytes of each; 0 if they differ
  NodePtr child;                      // vector
  std::vector<NodePtr> children;      // sequence
  std::vector<std::int64_t> at;       // blocks, sequence: address of each entry; the first is 0
  std::vector<std::int64_t> before;   // sequence, blocks that differ: data before each entry, then the size
  std::vector<std::int64_t> started;  // sequence: segments begun before each entry, then all of them

  // Returns the bytes of block i of `blocks`.
  std::int64_t length(std::int64_t i) const {
    return block != 0 ? block : before[static_cast<std::size_t>(i) + 1] - before[static_cast<std::size_t>(i)];
  }
  // Returns the bytes of data before the i-th child, block or entry. Precondition: no run.
  std::int64_t data_before(std::int64_t i) const {
    if (kind == NodeKind::vector) return i * child->size;
    return block != 0 ? i * block : before[static_cast<std::size_t>(i)];
  }
  // Returns which child, block or entry contains byte `data` of the data. Preconditions: no run, 0 <= data < size.
  std::int64_t entry_of(std::int64_t data) const {
    if (kind == NodeKind::vector) return data / child->size;
    if (block != 0) return data / block;
    return std::upper_bound(before.begin(), before.end(), data) - before.begin() - 1;
  }
  // Returns the i-th child of a vector or sequence.
  const TypeNode& part(std::int64_t i) const {
    return kind == NodeKind::vector ? *child : *children[static_cast<std::size_t>(i)];
  }
  // Returns the address of the i-th child, block or entry. Precondition: no run.
  std::int64_t address(std::int64_t i) const {
    return kind == NodeKind::vector ? i * stride : at[static_cast<std::size_t>(i)];
  }
  // True if entry i of a vector or sequence begins where entry i - 1 ends. Precondition: i >= 1.
  bool joined(std::int64_t i) const {
    if (kind == NodeKind::vector) return child->end == stride;
    return address(i) == address(i - 1) + part(i - 1).end;
  }
};

// A node at an address. Without a node, there are no data.
struct Placed {
  NodePtr node;
  std::int64_t at = 0;
};

// True if both trees are equal. O(distinct nodes); nodes with different hashes are told apart at once.
bool same(const TypeNode& a, const TypeNode& b);
inline bool same(const NodePtr& a, const NodePtr& b) { return a == b || (a && b && same(*a, *b)); }

// Make nodes. Those that return a Result fail if a size or an address exceeds `limit`, or the depth `max_depth`.
// Precondition: 0 <= bytes <= limit.
Placed make_run(std::int64_t bytes);
// Repeats the child `count` times, `stride` bytes apart. Precondition: count >= 0.
Result<Placed> make_vector(std::int64_t count, std::int64_t stride, const Placed& child);
// Makes runs of `lengths` bytes at the addresses `at`, in data order. Preconditions: as many addresses as lengths,
// lengths >= 0, and addresses within the limit.
Result<Placed> make_blocks(std::vector<std::int64_t> at, std::vector<std::int64_t> lengths);
// Places the entries one behind the other in the data. Entries without a node are omitted.
Result<Placed> make_sequence(const std::vector<Placed>& entries);
// Does the same for the entries of a node that was in normal form, all with nodes. It takes memory in proportion to
// their number, which makes it safe for entries that were received.
Result<Placed> join(const std::vector<Placed>& entries);

}  // namespace hocket::layout
