#include "layout/layout.hpp"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hocket::layout {
namespace {

Error too_large(const char* combiner) {
  return Error{std::string(combiner) + ": an address or extent beyond 2^62 bytes: use smaller counts or displacements"};
}

Error below_zero(const char* combiner, const char* what, std::int64_t value) {
  return Error{std::string(combiner) + ": " + what + " " + std::to_string(value) + " is below 0"};
}

// Accumulates the least lower and the greatest upper bound of the parts. Wide integers make overflow impossible.
class Bounds {
 public:
  // Adds `count` children from `displacement` on, `stride` bytes apart. Adds nothing for count 0.
  void add(Wide displacement, std::int64_t count, Wide stride, const Layout& child) {
    if (count == 0) return;
    const Wide reach = Wide{count - 1} * stride;
    const Wide lower = displacement + std::min<Wide>(reach, 0) + child.lower_bound();
    const Wide upper = displacement + std::max<Wide>(reach, 0) + child.upper_bound();
    lower_ = any_ ? std::min(lower_, lower) : lower;
    upper_ = any_ ? std::max(upper_, upper) : upper;
    any_ = true;
  }
  // Returns the data with the accumulated bounds.
  Result<Layout> with(const char* combiner, Result<Placed> data) const {
    if (!data) return data.error();
    if (!fits(lower_) || !fits(upper_)) return too_large(combiner);
    return Layout(std::move(data).value(), static_cast<std::int64_t>(lower_), static_cast<std::int64_t>(upper_));
  }

 private:
  Wide lower_ = 0;
  Wide upper_ = 0;
  bool any_ = false;
};

// Repeats a layout `count` times, `stride` bytes apart. The stride of fewer than two is irrelevant, so it may be too
// large.
Result<Layout> repeated(const char* combiner, std::int64_t count, Wide stride, const Layout& child) {
  if (count < 0) return below_zero(combiner, "count", count);
  if (count < 2) stride = 0;
  if (!fits(stride)) return too_large(combiner);
  Bounds bounds;
  bounds.add(0, count, stride, child);
  return bounds.with(combiner, make_vector(count, static_cast<std::int64_t>(stride), child.data()));
}

// Places `count` blocks of `block` contiguous children each, `stride` bytes apart.
Result<Layout> blocks_apart(const char* combiner, std::int64_t count, std::int64_t block, Wide stride,
                            const Layout& child) {
  Result<Layout> one = repeated(combiner, block, child.extent(), child);
  return one ? repeated(combiner, count, block == 0 ? 0 : stride, one.value()) : one;
}

// True if repetitions of the child touch each other. A block of them is one run, which needs no node of its own.
bool dense(const Layout& child) { return child.data().node && child.contiguous() && child.size() == child.extent(); }

// Places the blocks of an indexed type or a structure. `child(i)` is the child of block i.
class BlockPlacer {
 public:
  explicit BlockPlacer(const char* combiner) : combiner_(combiner) {}

  template <class Child>
  // Checks the arguments, and chooses the cheaper form: a table if each block is one run, else a sequence of nodes.
  Result<Layout> place(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                       const Child& child) {
    if (blocks.size() != displacements.size()) return Error{std::string(combiner_) + ": lists of different lengths"};
    bool all_dense = true;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] < 0) return below_zero(combiner_, "block length", blocks[i]);
      bounds_.add(displacements[i], blocks[i], child(i).extent(), child(i));
      all_dense = all_dense && dense(child(i));
    }
    return all_dense ? table(blocks, displacements, child) : sequence(blocks, displacements, child);
  }

 private:
  template <class Child>
  Result<Layout> table(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                       const Child& child) const {
    std::vector<std::int64_t> at;
    std::vector<std::int64_t> lengths;
    at.reserve(blocks.size());
    lengths.reserve(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] == 0) continue;
      const Wide address = Wide{displacements[i]} + child(i).data().at;
      const Wide length = Wide{blocks[i]} * child(i).size();
      if (!fits(address) || !fits(length)) return too_large(combiner_);
      at.push_back(static_cast<std::int64_t>(address));
      lengths.push_back(static_cast<std::int64_t>(length));
    }
    return bounds_.with(combiner_, make_blocks(std::move(at), std::move(lengths)));
  }

  template <class Child>
  Result<Layout> sequence(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                          const Child& child) {
    std::vector<Placed> entries;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Result<Placed> part = block(blocks[i], child(i));
      if (!part) return part.error();
      Placed placed = std::move(part).value();
      if (!placed.node) continue;
      const Wide address = Wide{placed.at} + displacements[i];
      if (!fits(address)) return too_large(combiner_);
      placed.at = static_cast<std::int64_t>(address);
      entries.push_back(std::move(placed));
    }
    return bounds_.with(combiner_, make_sequence(entries));
  }

  // Returns a block of `count` children. Blocks of equal children and counts share one node.
  Result<Placed> block(std::int64_t count, const Layout& child) {
    const auto [known, is_new] =
        made_.try_emplace({child.data().node.get(), child.data().at, child.extent(), count}, Placed{});
    if (is_new) {
      Result<Placed> made = make_vector(count, child.extent(), child.data());
      if (!made) return made;
      known->second = std::move(made).value();
    }
    return known->second;
  }

  const char* combiner_;
  Bounds bounds_;
  std::map<std::tuple<const TypeNode*, std::int64_t, std::int64_t, std::int64_t>, Placed> made_;
};

// Converts displacements from extents of the child to bytes.
Result<std::vector<std::int64_t>> in_bytes(const char* combiner, std::span<const std::int64_t> displacements,
                                           std::int64_t extent) {
  std::vector<std::int64_t> bytes;
  bytes.reserve(displacements.size());
  for (const std::int64_t displacement : displacements) {
    const Wide product = Wide{displacement} * extent;
    if (!fits(product)) return too_large(combiner);
    bytes.push_back(static_cast<std::int64_t>(product));
  }
  return bytes;
}

Result<Layout> place_indexed(const char* combiner, std::span<const std::int64_t> blocks,
                             std::span<const std::int64_t> displacements, const Layout& child) {
  return BlockPlacer(combiner).place(blocks, displacements, [&](std::size_t) -> const Layout& { return child; });
}

}  // namespace

Result<Layout> contiguous_bytes(std::int64_t bytes) {
  if (bytes < 0) return below_zero("a named datatype", "size", bytes);
  if (bytes > limit) return too_large("a named datatype");
  return Layout(make_run(bytes), 0, bytes);
}

Result<Layout> contiguous(std::int64_t count, const Layout& child) {
  return repeated("contiguous", count, child.extent(), child);
}

Result<Layout> vector(std::int64_t count, std::int64_t block, std::int64_t stride, const Layout& child) {
  return blocks_apart("vector", count, block, Wide{stride} * child.extent(), child);
}

Result<Layout> hvector(std::int64_t count, std::int64_t block, std::int64_t stride_bytes, const Layout& child) {
  return blocks_apart("hvector", count, block, stride_bytes, child);
}

Result<Layout> indexed(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                       const Layout& child) {
  const Result<std::vector<std::int64_t>> bytes = in_bytes("indexed", displacements, child.extent());
  return bytes ? place_indexed("indexed", blocks, bytes.value(), child) : bytes.error();
}

Result<Layout> hindexed(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                        const Layout& child) {
  return place_indexed("hindexed", blocks, displacements, child);
}

Result<Layout> indexed_block(std::int64_t block, std::span<const std::int64_t> displacements, const Layout& child) {
  const Result<std::vector<std::int64_t>> bytes = in_bytes("indexed_block", displacements, child.extent());
  return bytes ? hindexed_block(block, bytes.value(), child) : bytes.error();
}

Result<Layout> hindexed_block(std::int64_t block, std::span<const std::int64_t> displacements, const Layout& child) {
  const std::vector<std::int64_t> blocks(displacements.size(), block);
  return place_indexed("hindexed_block", blocks, displacements, child);
}

Result<Layout> structure(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                         std::span<const Layout> children) {
  if (children.size() != blocks.size()) return Error{"structure: lists of different lengths"};
  return BlockPlacer("structure").place(blocks, displacements, [&](std::size_t i) -> const Layout& {
    return children[i];
  });
}

Result<Layout> resized(std::int64_t lower_bound, std::int64_t extent, const Layout& child) {
  const Wide upper = Wide{lower_bound} + extent;
  if (!fits(lower_bound) || !fits(upper)) return too_large("resized");
  return Layout(child.data(), lower_bound, static_cast<std::int64_t>(upper));
}

}  // namespace hocket::layout
