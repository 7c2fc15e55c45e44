// Queries that a node answers without a walk over its data, in O(depth · log). Pure.
#pragma once

#include "layout/node.hpp"

namespace hocket::layout {

// Returns the address of a byte of the data. Precondition: 0 <= data < size.
std::int64_t address_of(const TypeNode& node, std::int64_t data);

// Returns the number of bytes of data at addresses below `address`. Precondition: the node is ordered.
std::int64_t data_below(const TypeNode& node, std::int64_t address);

// Returns the number of segments that begin in the first `data` bytes. Precondition: 0 <= data <= size.
std::int64_t segments_begun(const TypeNode& node, std::int64_t data);

// Returns the number of segments that the range of data touches. A segment that is partly in it counts as one.
// Precondition: the range lies within 0 … size.
std::int64_t count_segments(const TypeNode& node, Extent data);

}  // namespace hocket::layout
