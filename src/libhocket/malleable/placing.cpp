#include "malleable/placing.hpp"

#include <algorithm>
#include <cstddef>

namespace hocket::runtime {
namespace {

bool has_free_core(const OccupiedNode& node) {
  return std::find(node.cores.begin(), node.cores.end(), false) != node.cores.end();
}

// Returns the distance from a core to the nearest one with a process; beyond all cores if there is none.
std::size_t room_around(const OccupiedNode& node, std::size_t core) {
  std::size_t nearest = node.cores.size();
  for (std::size_t other = 0; other < node.cores.size(); ++other)
    if (node.cores[other]) nearest = std::min(nearest, other > core ? other - core : core - other);
  return nearest;
}

OccupiedNode& best_node(std::vector<OccupiedNode>& nodes, Placement placement) {
  if (placement == Placement::compact) {
    const auto first = std::find_if(nodes.begin(), nodes.end(), has_free_core);
    if (first != nodes.end()) return *first;
  }
  return *std::min_element(nodes.begin(), nodes.end(), [](const OccupiedNode& one, const OccupiedNode& other) {
    return one.processes < other.processes;
  });
}

// Returns the best free core; -1 if none is free.
std::int64_t best_core(const OccupiedNode& node, Placement placement) {
  std::int64_t best = -1;
  std::size_t best_room = 0;
  for (std::size_t core = 0; core < node.cores.size(); ++core) {
    if (node.cores[core]) continue;
    const std::size_t room = placement == Placement::spread ? room_around(node, core) : 1;
    if (room <= best_room) continue;
    best = static_cast<std::int64_t>(core);
    best_room = room;
  }
  return best;
}

void occupy(OccupiedNode& node, std::int64_t core) {
  ++node.processes;
  if (core >= 0 && core < static_cast<std::int64_t>(node.cores.size()))
    node.cores[static_cast<std::size_t>(core)] = true;
}

}  // namespace

std::vector<OccupiedNode> nodes_of(const std::vector<PlacedProcess>& processes, Placement placement) {
  std::vector<OccupiedNode> nodes;
  const auto node_of = [&nodes](const PlacedProcess& process) -> OccupiedNode& {
    for (OccupiedNode& node : nodes)
      if (node.name == process.node) return node;
    return nodes.emplace_back(OccupiedNode{
        process.node, std::vector<bool>(static_cast<std::size_t>(std::max<std::int64_t>(1, process.cores)))});
  };
  for (const PlacedProcess& process : processes) {
    OccupiedNode& node = node_of(process);
    if (process.core >= 0) occupy(node, process.core);
  }
  for (const PlacedProcess& process : processes) {
    if (process.core >= 0) continue;
    OccupiedNode& node = node_of(process);
    occupy(node, best_core(node, placement));
  }
  return nodes;
}

std::vector<ProcessPlace> place(std::vector<OccupiedNode>& nodes, std::int64_t count, Placement placement) {
  std::vector<ProcessPlace> places;
  for (std::int64_t i = 0; i < count; ++i) {
    OccupiedNode& node = best_node(nodes, placement);
    const std::int64_t core = best_core(node, placement);
    occupy(node, core);
    places.push_back({node.name, core});
  }
  return places;
}

}  // namespace hocket::runtime
