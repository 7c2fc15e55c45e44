// MPI datatypes as hocket represents them, and the functions that build them: one for each of MPI's combiners.
//
// Code that decodes MPI's handles (MPI_Type_get_envelope, MPI_Type_get_contents) calls these from the inside out.
// Counts, lengths and displacements have MPI's meaning, but are 64 bits wide. Combiners without a function of their
// own: DUP is a copy. NAMED is `contiguous_bytes` of the type's size, `resized` to its extent; pair types with a hole
// (MPI_SHORT_INT) are a `structure`. Lower bound and extent follow from the parts, without padding for alignment and
// without sticky bounds, in which MPI libraries differ. So pass the result of MPI_Type_get_extent to `resized` at
// each level.
//
// Values are immutable and cheap to copy; several threads may use one. The functions are pure. They return an error,
// without exceptions, if an argument is invalid, or if a size or an address exceeds 2^62 bytes.
#pragma once

#include <span>

#include "layout/walk.hpp"

namespace hocket::layout {

// A datatype: where its data lie relative to a buffer's address, and its bounds.
class Layout {
 public:
  Layout() = default;  // no data, extent 0
  // Makes a layout of the data and the bounds given; for the combiners.
  Layout(Placed data, std::int64_t lower, std::int64_t upper) : data_(std::move(data)), lower_(lower), upper_(upper) {}

  // Returns the bytes of data, without holes.
  std::int64_t size() const { return data_.node ? data_.node->size : 0; }
  std::int64_t lower_bound() const { return lower_; }
  std::int64_t upper_bound() const { return upper_; }
  std::int64_t extent() const { return upper_ - lower_; }
  // Returns the addresses from the first to the last byte of data, relative to the buffer; empty if there are no
  // data.
  Extent span() const {
    return data_.node ? Extent{data_.at + data_.node->low, data_.at + data_.node->high} : Extent{};
  }
  // Returns the number of contiguous runs in data order.
  std::int64_t segments() const { return data_.node ? data_.node->segments : 0; }
  // True if the data are one run or empty. The run begins at span().first.
  bool contiguous() const { return !data_.node || data_.node->kind == NodeKind::run; }
  // True if the data lie at rising addresses, none twice.
  bool ordered() const { return !data_.node || data_.node->ordered; }

  // Returns a walk over part of the data. Precondition: the interval lies within 0 … size().
  Walk walk(Extent data) const { return {data_, data}; }
  Walk walk() const { return {data_, {0, size()}}; }
  const Placed& data() const { return data_; }

  // True only if both have the same bytes in the same order and the same bounds. It may be false for equal layouts
  // that the normal form does not recognise as equal.
  bool operator==(const Layout& other) const {
    return lower_ == other.lower_ && upper_ == other.upper_ && data_.at == other.data_.at &&
           same(data_.node, other.data_.node);
  }

 private:
  Placed data_;
  std::int64_t lower_ = 0;
  std::int64_t upper_ = 0;
};

// A run of bytes: a named datatype without holes.
Result<Layout> contiguous_bytes(std::int64_t bytes);
Result<Layout> contiguous(std::int64_t count, const Layout& child);
// Blocks at equal distances. The stride from block to block counts extents of the child, or bytes (h…).
Result<Layout> vector(std::int64_t count, std::int64_t block, std::int64_t stride, const Layout& child);
Result<Layout> hvector(std::int64_t count, std::int64_t block, std::int64_t stride_bytes, const Layout& child);
// Blocks at given places. Displacements count extents of the child, or bytes (h…). The lists must have equal lengths.
Result<Layout> indexed(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                       const Layout& child);
Result<Layout> hindexed(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                        const Layout& child);
Result<Layout> indexed_block(std::int64_t block, std::span<const std::int64_t> displacements, const Layout& child);
Result<Layout> hindexed_block(std::int64_t block, std::span<const std::int64_t> displacements, const Layout& child);
// Blocks of different children, at displacements in bytes.
Result<Layout> structure(std::span<const std::int64_t> blocks, std::span<const std::int64_t> displacements,
                         std::span<const Layout> children);
// The same data with other bounds.
Result<Layout> resized(std::int64_t lower_bound, std::int64_t extent, const Layout& child);

// ---- arrays ------------------------------------------------------------------------------------------------------

enum class Order : std::uint8_t { c, fortran };  // c: the last dimension is contiguous; fortran: the first

// A rectangular part of an array of `sizes` children, of `subsizes` from `starts` on.
Result<Layout> subarray(std::span<const std::int64_t> sizes, std::span<const std::int64_t> subsizes,
                        std::span<const std::int64_t> starts, Order order, const Layout& child);

// Distribution of one dimension over processes, as in MPI_Type_create_darray.
enum class Distribution : std::uint8_t { none, block, cyclic };
inline constexpr std::int64_t default_argument = -1;  // MPI_DISTRIBUTE_DFLT_DARG

// One dimension of a distributed array.
struct Dimension {
  std::int64_t size = 0;  // elements of the whole array
  Distribution distribution = Distribution::none;
  std::int64_t argument = default_argument;  // elements of a block
  std::int64_t processes = 1;                // of the grid in this dimension
};

// The part of process `rank` of an array that is distributed over a grid of `processes` in row-major order.
Result<Layout> darray(std::int64_t processes, std::int64_t rank, std::span<const Dimension> dimensions, Order order,
                      const Layout& child);

}  // namespace hocket::layout
