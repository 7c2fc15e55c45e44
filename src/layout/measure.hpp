// Questions to a node that are answered without walking over its data: O(depth · log).
#pragma once

#include "layout/node.hpp"

namespace hocket::layout {

// Address of a byte of the data. Precondition: 0 <= data < size.
std::int64_t address_of(const Node& node, std::int64_t data);

// Bytes of data at addresses below `address`. Precondition: the node is ordered.
std::int64_t data_below(const Node& node, std::int64_t address);

// Segments that begin in the first `data` bytes. Precondition: 0 <= data <= size.
std::int64_t segments_begun(const Node& node, std::int64_t data);

// Segments that the interval of the data lies in, a part of one counted as one. Precondition: within 0 … size.
std::int64_t count_segments(const Node& node, Interval data);

}  // namespace hocket::layout
