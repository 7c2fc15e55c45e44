#include "malleable/worlds.hpp"

#include <algorithm>
#include <map>
#include <ranges>

namespace hocket::runtime {
namespace {

// Ends the leaving processes whose world has no process left that computes; the others sleep.
Departure depart(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers,
                 const std::vector<bool>& leaving) {
  std::map<std::int64_t, int> computing;  // processes by world, after the departure
  for (std::size_t rank = 0; rank < processes.size(); ++rank)
    if (!leaving[rank]) ++computing[processes[rank].world];
  Departure departure;
  for (const ProcessInfo& sleeper : sleepers)
    if (computing[sleeper.world] > 0) departure.sleepers.push_back(sleeper);
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const bool ends = leaving[rank] && computing[processes[rank].world] == 0;
    auto& list = !leaving[rank] ? departure.stay : ends ? departure.end : departure.sleep;
    list.push_back(static_cast<int>(rank));
    if (leaving[rank] && !ends) departure.sleepers.push_back(processes[rank]);
  }
  return departure;
}

}  // namespace

Departure shrink(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers, int targets) {
  const int size = static_cast<int>(processes.size());
  int to_go = size - targets;
  std::vector<bool> leaving(processes.size());
  std::map<std::int64_t, int> computing;
  for (const ProcessInfo& process : processes) ++computing[process.world];
  // Takes whole worlds that fit first. The loop meets the highest rank of each world first, and so takes the world
  // there.
  std::map<std::int64_t, bool> taken;
  for (int rank = size - 1; rank > 0 && to_go > 0; --rank) {
    const std::int64_t world = processes[static_cast<std::size_t>(rank)].world;
    if (world == processes[0].world || taken[world] || computing[world] > to_go) continue;
    taken[world] = true;
    to_go -= computing[world];
  }
  for (int rank = 1; rank < size; ++rank)
    leaving[static_cast<std::size_t>(rank)] = taken[processes[static_cast<std::size_t>(rank)].world];
  // Takes single processes of worlds that stay in part next; these will sleep.
  for (int rank = size - 1; rank > 0 && to_go > 0; --rank) {
    if (leaving[static_cast<std::size_t>(rank)]) continue;
    leaving[static_cast<std::size_t>(rank)] = true;
    --to_go;
  }
  return depart(processes, sleepers, leaving);
}

Departure leave_all(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers) {
  return depart(processes, sleepers, std::vector<bool>(processes.size(), true));
}

}  // namespace hocket::runtime
