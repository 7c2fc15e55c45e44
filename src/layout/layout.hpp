// An MPI datatype as hocket knows it, and the combiners by which it is built: one function for each of MPI's.
//
// Whoever decodes MPI's handles (MPI_Type_get_envelope, MPI_Type_get_contents) calls these from the inside out; the
// counts, lengths and displacements have MPI's meaning, but are 64 bits wide. A combiner of which there is no function
// is one of these: DUP is a copy; NAMED is `contiguous_bytes` of the type's size, `resized` to its extent, but for pair
// types with a hole (MPI_SHORT_INT), which are a `structure`. Lower bound and extent follow from the parts, without
// padding for alignment and without sticky bounds, in which MPIs differ: give what MPI_Type_get_extent says, at each
// level, to `resized`.
//
// Values are cheap to copy, and do not change: several threads may use one. The functions are pure and fail, without
// exceptions, where an argument is not valid or a size or an address would go beyond 2^62 bytes.
#pragma once

#include <span>

#include "layout/walk.hpp"

namespace hocket::layout {

class Layout {
 public:
  Layout() = default;  // no data, no extent
  // The data and the bounds given; for the combiners.
  Layout(Placed data, std::int64_t lower, std::int64_t upper) : data_(std::move(data)), lower_(lower), upper_(upper) {}

  std::int64_t size() const { return data_.node ? data_.node->size : 0; }
  std::int64_t lower_bound() const { return lower_; }
  std::int64_t upper_bound() const { return upper_; }
  std::int64_t extent() const { return upper_ - lower_; }
  // Addresses that hold data, relative to the buffer; empty where there are none.
  Interval span() const {
    return data_.node ? Interval{data_.at + data_.node->low, data_.at + data_.node->high} : Interval{};
  }
  std::int64_t segments() const { return data_.node ? data_.node->segments : 0; }
  // One run, or nothing; it begins at span().first.
  bool contiguous() const { return !data_.node || data_.node->kind == Kind::run; }
  // The data lie at rising addresses, none twice.
  bool ordered() const { return !data_.node || data_.node->ordered; }

  // Precondition: the interval lies within the data, 0 … size().
  Walk walk(Interval data) const { return {data_, data}; }
  Walk walk() const { return {data_, {0, size()}}; }
  const Placed& data() const { return data_; }

  // The same bytes in the same order, with the same bounds, as far as the normal form shows it: equal is equal, but
  // not equal may be equal all the same.
  bool operator==(const Layout& other) const {
    return lower_ == other.lower_ && upper_ == other.upper_ && data_.at == other.data_.at &&
           same(data_.node, other.data_.node);
  }

 private:
  Placed data_;
  std::int64_t lower_ = 0;
  std::int64_t upper_ = 0;
};

Result<Layout> contiguous_bytes(std::int64_t bytes);
Result<Layout> contiguous(std::int64_t count, const Layout& child);
// Strides: from block to block, in extents of the child, or in bytes (h…).
Result<Layout> vector(std::int64_t count, std::int64_t block, std::int64_t stride, const Layout& child);
Result<Layout> hvector(std::int64_t count, std::int64_t block, std::int64_t stride_bytes, const Layout& child);
// Displacements: in extents of the child, or in bytes (h…).
Result<Layout> indexed(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                       const Layout& child);
Result<Layout> hindexed(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                        const Layout& child);
Result<Layout> indexed_block(std::int64_t block, std::span<const std::int64_t> displacements, const Layout& child);
Result<Layout> hindexed_block(std::int64_t block, std::span<const std::int64_t> displacements, const Layout& child);
Result<Layout> structure(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                         std::span<const Layout> children);
Result<Layout> resized(std::int64_t lower_bound, std::int64_t extent, const Layout& child);

// ---- arrays ------------------------------------------------------------------------------------------------------

enum class Order : std::uint8_t { c, fortran };  // the last, or the first dimension is the one without strides

Result<Layout> subarray(std::span<const std::int64_t> sizes, std::span<const std::int64_t> subsizes,
                        std::span<const std::int64_t> starts, Order order, const Layout& child);

enum class Distribution : std::uint8_t { none, block, cyclic };
inline constexpr std::int64_t default_argument = -1;  // MPI_DISTRIBUTE_DFLT_DARG

struct Dimension {
  std::int64_t size = 0;  // of the whole array
  Distribution distribution = Distribution::none;
  std::int64_t argument = default_argument;  // elements of a block, of cyclic(k)
  std::int64_t processes = 1;                // in this dimension of the grid
};

// The part of process `rank` of an array shared out over a grid of `processes` in row-major order.
Result<Layout> darray(std::int64_t processes, std::int64_t rank, std::span<const Dimension> dimensions, Order order,
                      const Layout& child);

}  // namespace hocket::layout
