#include "malleable/worlds.hpp"

#include <algorithm>
#include <map>

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

// The processes that leave, while they are being chosen. Rank 0 stays.
class LeaverChoice {
 public:
  LeaverChoice(const std::vector<ProcessInfo>& processes, int to_go)
      : processes_(processes), leaving_(processes.size()), to_go_(to_go) {
    for (int rank = 0; rank < static_cast<int>(processes.size()); ++rank) {
      World& world = worlds_[process(rank).world];
      world.ranks.push_back(rank);
      world.is_on_one_node &= process(rank).node_name() == process(world.ranks.front()).node_name();
      ++world.computing;
    }
  }

  // Lets as many processes as are named leave each of the nodes.
  void leave_nodes(const std::vector<NodeCount>& nodes) {
    for (const NodeCount& node : nodes) {
      std::int64_t most = node.count;
      const auto is_there = [&](int rank) { return process(rank).node_name() == node.node && !leaves(rank); };
      for_each_from_last([&](int rank) {
        const World& world = world_of(rank);
        if (is_there(rank) && can_end(rank) && world.is_on_one_node && world.computing <= most)
          most -= take_world(rank);
      });
      for_each_from_last([&](int rank) {
        if (is_there(rank) && most > 0) most -= take(rank);
      });
    }
  }

  // Lets whole worlds that can end leave. If some of them have one process each, which of these leave remains open.
  void leave_by_worlds() {
    for_each_from_last([&](int rank) {
      if (!can_end(rank) || world_of(rank).computing > to_go_) return;
      if (world_of(rank).computing > 1) {
        take_world(rank);
      } else {
        ++open_;
        --to_go_;
      }
    });
  }

  // If whole worlds are too few, any other processes leave, and will sleep.
  std::vector<redistribute::Fate> fates() const {
    using redistribute::Fate;
    const auto fate_of = [&](int rank) {
      const bool ends_alone = can_end(rank) && world_of(rank).computing == 1;
      if (rank == 0) return Fate::stays;
      if (leaves(rank)) return Fate::leaves;
      if (to_go_ > 0) return ends_alone ? Fate::leaves : Fate::may_leave;
      return ends_alone && open_ > 0 ? Fate::may_leave : Fate::stays;
    };
    std::vector<Fate> fates;
    fates.reserve(processes_.size());
    for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) fates.push_back(fate_of(rank));
    return fates;
  }

 private:
  struct World {
    std::vector<int> ranks;
    int computing = 0;  // of these, without those that leave
    bool is_on_one_node = true;
  };

  const ProcessInfo& process(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  const World& world_of(int rank) const { return worlds_.at(process(rank).world); }
  bool leaves(int rank) const { return leaving_[static_cast<std::size_t>(rank)]; }
  bool can_end(int rank) const { return process(rank).world != processes_[0].world && !leaves(rank); }

  template <class Visit>
  void for_each_from_last(Visit visit) const {
    for (int rank = static_cast<int>(processes_.size()) - 1; rank > 0 && to_go_ > 0; --rank) visit(rank);
  }

  // Both return the number of processes that leave thereby.
  int take(int rank) {
    if (leaves(rank) || to_go_ == 0) return 0;
    leaving_[static_cast<std::size_t>(rank)] = true;
    --worlds_.at(process(rank).world).computing;
    --to_go_;
    return 1;
  }
  int take_world(int rank) {
    int taken = 0;
    if (world_of(rank).computing > to_go_) return 0;
    for (const int other : world_of(rank).ranks) taken += take(other);
    return taken;
  }

  const std::vector<ProcessInfo>& processes_;
  std::map<std::int64_t, World> worlds_;
  std::vector<bool> leaving_;
  int to_go_;     // processes that must still be chosen
  int open_ = 0;  // so many leave of the processes that are the last ones of their worlds
};

}  // namespace

Departure shrink(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers,
                 const redistribute::Overlap& overlap, const std::vector<NodeCount>& leave) {
  LeaverChoice choice(processes, static_cast<int>(processes.size()) - overlap.parts());
  choice.leave_nodes(leave);
  choice.leave_by_worlds();
  std::vector<bool> leaving(processes.size(), true);
  for (const int stays : redistribute::order_of_parts(overlap, choice.fates()))
    leaving[static_cast<std::size_t>(stays)] = false;
  return depart(processes, sleepers, leaving);
}

Departure leave_all(const std::vector<ProcessInfo>& processes, const std::vector<ProcessInfo>& sleepers) {
  return depart(processes, sleepers, std::vector<bool>(processes.size(), true));
}

std::vector<NodeCount> counts_by_node(const std::vector<ProcessInfo>& processes) {
  std::vector<NodeCount> counts;
  std::map<std::string_view, std::size_t> places;
  for (const ProcessInfo& process : processes) {
    const auto [place, is_new] = places.try_emplace(process.node_name(), counts.size());
    if (is_new) counts.push_back({std::string{process.node_name()}, 0});
    ++counts[place->second].count;
  }
  return counts;
}

}  // namespace hocket::runtime
