#include "coordinator/cores/leaving.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace hocket::coordinator {

std::vector<NodeCount> nodes_to_leave(const model::Cores& cores, const model::Application& application,
                                      std::int64_t processes, const std::vector<NodeCount>& before) {
  if (application.runs_on().empty()) return {};
  // These are also the cores of a growth that may be under way.
  std::vector<NodeCount> has = cores.shares_of(application.id);
  if (has.size() < 2) return {};
  std::int64_t surplus = cores.of(application.id) - processes;
  std::vector<NodeCount> leave;
  const auto take = [&](NodeCount& from, std::int64_t most) {
    const std::int64_t here = std::min({from.count, most, surplus});
    if (here <= 0) return;
    const auto named = std::find_if(leave.begin(), leave.end(), [&](const auto& one) { return one.node == from.node; });
    if (named == leave.end()) {
      leave.push_back({from.node, here});
    } else {
      named->count += here;
    }
    from.count -= here;
    surplus -= here;
  };
  for (NodeCount& node : has) take(node, cores.beyond_on(node.node));
  if (before.empty()) return leave;
  std::map<std::string, std::int64_t> earlier;
  for (const NodeCount& node : before) earlier[node.node] += node.count;
  for (NodeCount& node : has) take(node, node.count - earlier[node.node]);
  return leave;
}

}  // namespace hocket::coordinator
