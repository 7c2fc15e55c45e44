// Chooses the ranks that aggregate in a collective access. Pure; all ranks compute the same from the same numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hocket::collective_plan {

// Returns `count` ranks, ascending, spread evenly over the nodes and within each node, whatever the order of the ranks:
// the numbers of two nodes differ by one at most, unless a node has no more ranks. `nodes` has a number for the node of
// each rank, equal for ranks of one node. Precondition: 1 <= count <= nodes.size().
std::vector<int> choose_aggregators(std::span<const std::int64_t> nodes, int count);

}  // namespace hocket::collective_plan
