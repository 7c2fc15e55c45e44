// Chooses the nodes that a shrinking application should leave first. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/node_counts.hpp"
#include "model/application.hpp"
#include "model/cores.hpp"

namespace hocket::coordinator {

// Returns how many of its processes should leave which nodes, the first before the others, for it to have `processes`.
// Nodes with more processes than cores come first: other applications wait for cores there. Then come those where it
// has more than `before`, its nodes before it grew; empty: they are not known. Nothing is returned for an application
// that does not shrink, or has not reported where it runs, or runs on one node only: then its data decide.
std::vector<NodeCount> nodes_to_leave(const model::Cores& cores, const model::Application& application,
                                      std::int64_t processes, const std::vector<NodeCount>& before);

}  // namespace hocket::coordinator
