#include "collective_plan/aggregators.hpp"

#include <algorithm>
#include <unordered_map>

namespace hocket::collective_plan {
namespace {

// The ranks of one node, and how many of them aggregate.
struct Node {
  std::vector<int> ranks;
  std::size_t share = 0;
};

// Returns the nodes in the order of their first ranks.
std::vector<Node> nodes_of(std::span<const std::int64_t> numbers) {
  std::vector<Node> nodes;
  std::unordered_map<std::int64_t, std::size_t> known;
  for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
    const auto [found, is_new] = known.emplace(numbers[rank], nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[found->second].ranks.push_back(static_cast<int>(rank));
  }
  return nodes;
}

// Gives one more to each node that has more ranks, or to as many of these, evenly spread, as are left to give. Returns
// the number that is left then.
std::size_t give_each_one(std::vector<Node>& nodes, std::size_t left) {
  std::vector<Node*> open;
  for (Node& node : nodes)
    if (node.share < node.ranks.size()) open.push_back(&node);
  const std::size_t given = std::min(left, open.size());
  for (std::size_t i = 0; i < given; ++i) ++open[i * open.size() / given]->share;
  return left - given;
}

}  // namespace

std::vector<int> choose_aggregators(std::span<const std::int64_t> numbers, int count) {
  std::vector<Node> nodes = nodes_of(numbers);
  for (auto left = static_cast<std::size_t>(count); left > 0;) left = give_each_one(nodes, left);
  std::vector<int> chosen;
  for (const Node& node : nodes)
    for (std::size_t i = 0; i < node.share; ++i) chosen.push_back(node.ranks[i * node.ranks.size() / node.share]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace hocket::collective_plan
