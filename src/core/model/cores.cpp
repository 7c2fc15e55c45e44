#include "model/cores.hpp"

#include <algorithm>
#include <utility>

#include "base/saturating.hpp"

namespace hocket::model {

Cores::Cores(std::vector<Node> nodes) {
  for (Node& node : nodes) {
    const std::int64_t cores = std::max<std::int64_t>(0, node.cores);
    total_ = saturating_sum(total_, cores);
    nodes_.push_back({std::move(node.name), cores, 0});
  }
}

std::int64_t Cores::of(AppId app) const {
  const auto found = of_.find(app);
  if (found == of_.end()) return 0;
  std::int64_t sum = 0;
  for (const auto& [place, cores] : found->second) sum += cores;
  return sum;
}

std::vector<Share> Cores::shares_of(AppId app) const {
  const auto found = of_.find(app);
  if (found == of_.end()) return {};
  std::vector<Share> shares;
  for (const auto& [place, cores] : found->second) shares.push_back({nodes_[place].name, cores});
  return shares;
}

void Cores::give(AppId app, std::size_t place, std::int64_t cores) {
  if (cores <= 0) return;
  nodes_[place].taken += cores;
  taken_ += cores;
  of_[app][place] += cores;
}

void Cores::claim(AppId app, std::int64_t cores, const std::string& node) {
  cores = std::min(cores, most_claimed - taken_);
  if (nodes_.empty()) return;
  const auto named =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const NodeState& state) { return state.name == node; });
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < nodes_.size(); ++place) places.push_back(place);
  // The named node comes first, the others by free cores.
  std::stable_sort(places.begin(), places.end(),
                   [this](std::size_t a, std::size_t b) { return nodes_[a].free() > nodes_[b].free(); });
  if (named != nodes_.end()) {
    const auto first = std::find(places.begin(), places.end(), static_cast<std::size_t>(named - nodes_.begin()));
    std::rotate(places.begin(), first, first + 1);
  }
  for (const std::size_t place : places) {
    const std::int64_t here = std::min(cores, nodes_[place].free());
    give(app, place, here);
    cores -= std::max<std::int64_t>(0, here);
  }
  give(app, places.front(), cores);  // the processes run somewhere, free cores or not
}

// Returns the nodes with free cores: those of the application, the one with the most of its cores first, then others.
std::vector<std::size_t> Cores::places_for(AppId app) const {
  const auto owned = of_.find(app);
  const auto own = [&](std::size_t place) {
    if (owned == of_.end()) return std::int64_t{0};
    const auto here = owned->second.find(place);
    return here == owned->second.end() ? 0 : here->second;
  };
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    if (nodes_[place].free() > 0) places.push_back(place);
  }
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return own(a) > own(b); });
  return places;
}

std::optional<std::vector<Share>> Cores::allocate(AppId app, std::int64_t cores) {
  if (cores < 0 || cores > free()) return std::nullopt;  // the nodes together have at least free() cores

  std::vector<std::size_t> places = places_for(app);
  const auto owned = of_.find(app);
  std::vector<Share> shares;
  const auto take = [&](std::size_t place) {
    const std::int64_t here = std::min(cores, nodes_[place].free());
    if (here == 0) return;
    give(app, place, here);
    shares.push_back({nodes_[place].name, here});
    cores -= here;
  };
  auto next = places.begin();
  while (next != places.end() && owned != of_.end() && owned->second.contains(*next)) take(*next++);
  // The rest goes to the node that it fills best, so that large gaps stay whole. If none is large enough, the
  // emptiest nodes come first.
  const auto left_at = [&](std::size_t place) {
    return nodes_[place].free() >= cores ? nodes_[place].free() - cores : INT64_MAX;
  };
  const auto tightest =
      std::min_element(next, places.end(), [&](std::size_t a, std::size_t b) { return left_at(a) < left_at(b); });
  if (tightest != places.end() && left_at(*tightest) != INT64_MAX) {
    take(*tightest);
    return shares;
  }
  std::stable_sort(next, places.end(),
                   [this](std::size_t a, std::size_t b) { return nodes_[a].free() > nodes_[b].free(); });
  while (next != places.end()) take(*next++);
  return shares;
}

void Cores::release(AppId app, std::int64_t cores) {
  const auto found = of_.find(app);
  if (found == of_.end()) return;
  auto& has = found->second;
  std::vector<std::size_t> places;
  places.reserve(has.size());
  for (const auto& [place, here] : has) places.push_back(place);
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return has.at(a) < has.at(b); });
  for (const std::size_t place : places) {
    const std::int64_t here = std::min(std::max<std::int64_t>(0, cores), has[place]);
    cores -= here;
    nodes_[place].taken -= here;
    taken_ -= here;
    if ((has[place] -= here) == 0) has.erase(place);
  }
  if (has.empty()) of_.erase(found);
}

void Cores::release_all(AppId app) { release(app, of(app)); }

}  // namespace hocket::model
