// subarray and darray: parts of arrays as nested vectors, one for each dimension.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layout/layout.hpp"

namespace hocket::layout {
namespace {

Error wrong(const char* combiner, std::size_t dimension, const std::string& what) {
  return Error{std::string(combiner) + ": dimension " + std::to_string(dimension) + ": " + what};
}

std::string number(std::int64_t value) { return std::to_string(value); }

// Builds the part of an array dimension by dimension, in storage order: the contiguous dimension first.
class Array {
 public:
  explicit Array(const Layout& element) : stride_(element.extent()), part_(element.data()) {}

  // Adds a dimension of `size` elements. The part has `count` blocks of `block` elements, `cycle` elements apart,
  // from element `start` on, and `rest` elements at the place of the next block. Everything lies within the size.
  Status add(std::int64_t size, std::int64_t start, std::int64_t count, std::int64_t block, std::int64_t cycle,
             std::int64_t rest) {
    if (!fits(stride_ * size)) return too_large();
    Result<Placed> one = make_vector(block, bytes(1), part_);
    Result<Placed> blocks = one ? make_vector(count, bytes(cycle), one.value()) : one;
    Result<Placed> tail = make_vector(rest, bytes(1), part_);
    if (!blocks || !tail) return too_large();
    const std::optional<Placed> first = moved(blocks.value(), start);
    const std::optional<Placed> last = moved(tail.value(), rest > 0 ? start + count * cycle : 0);
    if (!first || !last) return too_large();
    Result<Placed> both = make_sequence({*first, *last});
    if (!both) return both.error();
    part_ = std::move(both).value();
    stride_ *= size;
    return success();
  }

  Layout layout() const { return {part_, 0, static_cast<std::int64_t>(stride_)}; }

 private:
  static Error too_large() { return Error{"an array of more than 2^62 bytes: use a smaller one"}; }
  std::int64_t bytes(std::int64_t elements) const { return static_cast<std::int64_t>(stride_ * elements); }
  // Shifts a part by elements of this dimension; nothing if it gets out of bounds.
  std::optional<Placed> moved(Placed part, std::int64_t elements) const {
    const Wide at = part.at + stride_ * elements;
    if (!fits(at)) return std::nullopt;
    part.at = static_cast<std::int64_t>(at);
    return part;
  }

  Wide stride_;  // bytes between elements of the next dimension
  Placed part_;  // the part within the dimensions added so far
};

// Returns which of n dimensions is the k-th in storage order.
std::size_t in_storage(std::size_t k, std::size_t n, Order order) { return order == Order::c ? n - 1 - k : k; }

// Returns the elements of a block of the dimension, by MPI's rules for darray. Fails if the dimension is invalid.
Result<std::int64_t> block_of(const Dimension& d, std::size_t i) {
  if (d.size < 1) return wrong("darray", i, "size " + number(d.size) + " is below 1");
  if (d.processes < 1) return wrong("darray", i, number(d.processes) + " processes are below 1");
  const bool chosen = d.argument != default_argument;
  if (chosen && d.argument < 1 && d.distribution != Distribution::none) {
    return wrong("darray", i, "distribution argument " + number(d.argument) + " is below 1");
  }
  switch (d.distribution) {
    case Distribution::none:
      if (d.processes != 1)
        return wrong("darray", i, "is not distributed, but has " + number(d.processes) + " processes");
      return d.size;
    case Distribution::cyclic: return chosen ? d.argument : 1;
    case Distribution::block: break;
  }
  if (!chosen) return (d.size - 1) / d.processes + 1;
  if (Wide{d.argument} * d.processes < d.size) {
    return wrong("darray", i,
                 "blocks of " + number(d.argument) + " on " + number(d.processes) + " processes do not hold " +
                     number(d.size) + " elements");
  }
  return d.argument;
}

// Adds the elements of dimension i that the process at `coordinate` of the grid holds.
Status distribute(Array& array, const Dimension& d, std::size_t i, std::int64_t coordinate) {
  const Result<std::int64_t> block = block_of(d, i);
  if (!block) return block.error();
  const Wide start = Wide{block.value()} * coordinate;
  if (start >= d.size) return array.add(d.size, 0, 0, 0, 0, 0);
  const std::int64_t first = static_cast<std::int64_t>(start);
  const Wide cycle = Wide{block.value()} * d.processes;
  const std::int64_t left = d.size - first;  // elements from its first block on
  const Wide whole = left >= block.value() ? (left - block.value()) / cycle + 1 : 0;
  const Wide rest_at = start + whole * cycle;
  const Wide rest = rest_at < d.size ? d.size - rest_at : 0;  // less than a block
  return array.add(d.size, first, static_cast<std::int64_t>(whole), std::min(block.value(), d.size),
                   static_cast<std::int64_t>(std::min<Wide>(cycle, d.size)), static_cast<std::int64_t>(rest));
}

}  // namespace

Result<Layout> subarray(std::span<const std::int64_t> sizes, std::span<const std::int64_t> subsizes,
                        std::span<const std::int64_t> starts, Order order, const Layout& child) {
  if (sizes.size() != subsizes.size() || sizes.size() != starts.size()) {
    return Error{"subarray: lists of different lengths"};
  }
  Array array(child);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::size_t i = in_storage(k, sizes.size(), order);
    if (sizes[i] < 0 || subsizes[i] < 0 || starts[i] < 0 || subsizes[i] > sizes[i] ||
        starts[i] > sizes[i] - subsizes[i]) {
      return wrong(
          "subarray", i,
          number(subsizes[i]) + " elements from " + number(starts[i]) + " on are not within " + number(sizes[i]));
    }
    const Status added = array.add(sizes[i], starts[i], 1, subsizes[i], subsizes[i], 0);
    if (!added) return added.error();
  }
  return array.layout();
}

Result<Layout> darray(std::int64_t processes, std::int64_t rank, std::span<const Dimension> dimensions, Order order,
                      const Layout& child) {
  if (rank < 0 || rank >= processes) {
    return Error{"darray: rank " + number(rank) + " is not one of " + number(processes) + " processes"};
  }
  std::vector<std::int64_t> coordinates(dimensions.size());
  Wide grid = 1;
  std::int64_t rest = rank;
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    if (dimensions[i].processes < 1) return wrong("darray", i, "has no processes");
    grid *= dimensions[i].processes;
    if (grid > processes) break;
    coordinates[i] = rest % dimensions[i].processes;
    rest /= dimensions[i].processes;
  }
  if (grid != processes) return Error{"darray: the grid does not have " + number(processes) + " processes"};
  Array array(child);
  for (std::size_t k = 0; k < dimensions.size(); ++k) {
    const std::size_t i = in_storage(k, dimensions.size(), order);
    const Status added = distribute(array, dimensions[i], i, coordinates[i]);
    if (!added) return added.error();
  }
  return array.layout();
}

}  // namespace hocket::layout
