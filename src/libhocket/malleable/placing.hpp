// Chooses nodes and cores for new processes where nobody else has: all sources compute the same places. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/places.hpp"
#include "malleable/methods.hpp"

namespace hocket::runtime {

// A node on which the application runs, and its cores 0 … cores.size() - 1.
struct OccupiedNode {
  std::string name;
  std::vector<bool> cores;     // true: a process is there
  std::int64_t processes = 0;  // also those without a core of their own
};

// One process of the application, as it reports itself.
struct PlacedProcess {
  std::string node;
  std::int64_t cores = 1;  // of its node
  std::int64_t core = -1;  // -1: bound to none, or to several
};

// Returns the nodes in the order of their first processes. Processes without a core of their own count as if they had
// been placed by `placement`.
std::vector<OccupiedNode> nodes_of(const std::vector<PlacedProcess>& processes, Placement placement);

// Returns the places of `count` new processes, and marks them in `nodes`, of which there must be one at least.
// compact: the lowest free cores of the first node that has one. spread: the node with the fewest processes, and there
// the free core with the most free cores around it. Where no core is free, a process gets none of its own.
std::vector<ProcessPlace> place(std::vector<OccupiedNode>& nodes, std::int64_t count, Placement placement);

}  // namespace hocket::runtime
