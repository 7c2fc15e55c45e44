#include "model/cores.hpp"

#include <algorithm>
#include <utility>

namespace hocket::model {

Cores::Cores(const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    const std::int64_t cores = std::clamp<std::int64_t>(node.cores, 0, most_claimed - total_);
    total_ += cores;
    nodes_[add_node(node.name)].cores = cores;
  }
}

std::size_t Cores::add_node(const std::string& name) {
  by_name_.emplace(name, nodes_.size());
  nodes_.push_back({name});
  return nodes_.size() - 1;
}

std::int64_t Cores::of(AppId app) const {
  const auto found = of_.find(app);
  if (found == of_.end()) return 0;
  std::int64_t sum = 0;
  for (const auto& [place, cores] : found->second) sum += cores;
  return sum;
}

std::int64_t Cores::away_of(AppId app) const {
  const auto found = of_.find(app);
  if (found == of_.end()) return 0;
  std::int64_t sum = 0;
  for (const auto& [place, cores] : found->second) sum += nodes_[place].is_away ? cores : 0;
  return sum;
}

std::vector<NodeCount> Cores::shares_of(AppId app) const {
  const auto found = of_.find(app);
  if (found == of_.end()) return {};
  std::vector<NodeCount> shares;
  for (const auto& [place, cores] : found->second) shares.push_back({nodes_[place].name, cores});
  return shares;
}

// Gives cores, or takes them back if `cores` is negative.
void Cores::give(AppId app, std::size_t place, std::int64_t cores) {
  if (cores == 0) return;
  nodes_[place].taken += cores;
  if (!nodes_[place].is_away) taken_ += cores;
  given_ += cores;
  if (HeldCores* holding = find(allocation_of(app))) count(*holding, place, cores);
  const auto has = of_.try_emplace(app).first;
  if ((has->second[place] += cores) == 0) has->second.erase(place);
  if (has->second.empty()) of_.erase(has);
}

void Cores::claim(AppId app, std::int64_t cores, const std::string& node) {
  cores = std::clamp<std::int64_t>(cores, 0, most_claimed - given_);
  if (nodes_.empty() || cores == 0) return;
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < nodes_.size(); ++place) places.push_back(place);
  // The named node comes first, the others by free cores.
  const HeldCores* holding = find(allocation_of(app));
  const auto rank = [&](std::size_t place) { return std::pair(nodes_[place].is_away, -free_at(place, holding)); };
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  if (const auto named = by_name_.find(node); named != by_name_.end()) {
    const auto first = std::find(places.begin(), places.end(), named->second);
    std::rotate(places.begin(), first, first + 1);
  }
  for (const std::size_t place : places) {
    const std::int64_t here = std::min(cores, free_at(place, holding));
    give(app, place, here);
    cores -= here;
  }
  give(app, places.front(), cores);  // the processes run somewhere, free cores or not
}

void Cores::settle(AppId app, std::int64_t cores, const std::vector<NodeCount>& runs, const std::string& node) {
  Places told;
  std::int64_t running = 0;
  for (const NodeCount& run : runs) {
    const auto named = by_name_.find(run.node);
    const std::int64_t here = std::clamp<std::int64_t>(run.count, 0, most_claimed - running);
    if (named == by_name_.end() || here == 0) continue;
    told[named->second] += here;
    running += here;
  }
  for (const auto& [place, count] : told) {
    const auto found = of_.find(app);
    const std::int64_t has = found != of_.end() && found->second.contains(place) ? found->second.at(place) : 0;
    if (count > has) give(app, place, std::min(count - has, most_claimed - given_));
  }
  const std::int64_t wanted = std::max(cores, running);
  const std::int64_t has = of(app);
  if (has > wanted) release(app, has - wanted, told);
  if (has < wanted) claim(app, wanted - has, node);
}

// Returns the nodes with free cores: those of the application, the one with the most of its cores first, then others.
std::vector<std::size_t> Cores::places_for(AppId app) const {
  const auto owned = of_.find(app);
  const auto own = [&](std::size_t place) {
    if (owned == of_.end()) return std::int64_t{0};
    const auto here = owned->second.find(place);
    return here == owned->second.end() ? 0 : here->second;
  };
  const HeldCores* holding = find(allocation_of(app));
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    if (free_at(place, holding) > 0) places.push_back(place);
  }
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return own(a) > own(b); });
  return places;
}

std::optional<std::vector<NodeCount>> Cores::allocate(AppId app, std::int64_t cores) {
  if (cores < 0 || cores > free_for(app)) return std::nullopt;  // the nodes together have at least as many

  const HeldCores* holding = find(allocation_of(app));
  const auto free_here = [&](std::size_t place) { return free_at(place, holding); };
  std::vector<std::size_t> places = places_for(app);
  const auto owned = of_.find(app);
  std::vector<NodeCount> shares;
  const auto take = [&](std::size_t place) {
    const std::int64_t here = std::min(cores, free_here(place));
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
    return free_here(place) >= cores ? free_here(place) - cores : INT64_MAX;
  };
  const auto tightest =
      std::min_element(next, places.end(), [&](std::size_t a, std::size_t b) { return left_at(a) < left_at(b); });
  if (tightest != places.end() && left_at(*tightest) != INT64_MAX) {
    take(*tightest);
    return shares;
  }
  std::stable_sort(next, places.end(), [&](std::size_t a, std::size_t b) { return free_here(a) > free_here(b); });
  while (next != places.end()) take(*next++);
  return shares;
}

void Cores::release(AppId app, std::int64_t cores) { release(app, cores, {}); }

void Cores::release(AppId app, std::int64_t cores, const Places& kept) {
  const auto found = of_.find(app);
  if (found == of_.end()) return;
  std::vector<std::pair<std::int64_t, std::size_t>> places;  // with the cores there
  for (const auto& [place, here] : found->second) places.emplace_back(here, place);
  std::sort(places.begin(), places.end());
  for (const auto& [has, place] : places) {
    const auto keeps = kept.find(place);
    const std::int64_t most = has - (keeps == kept.end() ? 0 : std::min(has, keeps->second));
    const std::int64_t here = std::min(std::max<std::int64_t>(0, cores), most);
    cores -= here;
    give(app, place, -here);
  }
}

void Cores::release_all(AppId app) { release(app, of(app)); }

// ---- nodes that come and go --------------------------------------------------------------------------------------

void Cores::set_node(const std::string& name, std::int64_t cores) {
  const bool is_unnamed = nodes_.size() == 1 && nodes_.front().name.empty();
  is_told_ = true;
  if (is_unnamed && !name.empty()) {
    nodes_.front().name = name;
    by_name_ = {{name, 0}};
  }
  const auto named = by_name_.find(name);
  const std::size_t place = named == by_name_.end() ? add_node(name) : named->second;
  nodes_[place].is_held_only = false;
  set_cores(nodes_[place], cores);
}

void Cores::set_cores(NodeState& node, std::int64_t cores) {
  if (!node.is_away) {
    total_ -= node.cores;
    taken_ -= node.taken;
  }
  node.cores = std::clamp<std::int64_t>(cores, 0, most_claimed - total_);
  node.is_away = cores < 1;
  if (node.is_away) return;
  total_ += node.cores;
  taken_ += node.taken;
}

// ---- allocations of a resource manager ---------------------------------------------------------------------------

std::int64_t Cores::HeldCores::unused(std::size_t place) const {
  const auto held = cores.find(place);
  if (held == cores.end()) return 0;
  const auto used = taken.find(place);
  return std::max<std::int64_t>(0, held->second - (used == taken.end() ? 0 : used->second));
}

void Cores::count(HeldCores& holding, std::size_t place, std::int64_t cores) {
  nodes_[place].reserved -= holding.unused(place);
  if ((holding.taken[place] += cores) == 0) holding.taken.erase(place);
  nodes_[place].reserved += holding.unused(place);
}

const Cores::HeldCores* Cores::find(const std::string& allocation) const {
  const auto found = holdings_.find(allocation);
  return found == holdings_.end() ? nullptr : &found->second;
}

Cores::HeldCores* Cores::find(const std::string& allocation) {
  const auto found = holdings_.find(allocation);
  return found == holdings_.end() ? nullptr : &found->second;
}

std::int64_t Cores::free_at(std::size_t place, const HeldCores* holding) const {
  const NodeState& node = nodes_[place];
  if (holding != nullptr) return std::min(node.free(), holding->unused(place));
  return std::max<std::int64_t>(0, node.free() - node.reserved);
}

std::vector<std::size_t> Cores::unused_places() const {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    const NodeState& node = nodes_[place];
    if (node.is_held_only && node.held == 0 && node.taken == 0) places.push_back(place);
  }
  return places;
}

std::optional<std::size_t> Cores::add_held_node(const std::string& name, std::vector<std::size_t>& places,
                                                const Places& used) {
  while (!places.empty() && used.contains(places.back())) places.pop_back();
  if (places.empty() && nodes_.size() >= most_nodes) return std::nullopt;
  std::size_t place = 0;
  if (places.empty()) {
    place = add_node(name);
  } else {
    place = places.back();
    places.pop_back();
    by_name_.erase(nodes_[place].name);
    by_name_.emplace(name, place);
    nodes_[place] = {name};
  }
  nodes_[place].is_away = nodes_[place].is_held_only = true;
  return place;
}

void Cores::hold(const std::string& allocation, const std::vector<NodeCount>& nodes) {
  HeldCores now;
  std::vector<std::size_t> unused = unused_places();
  for (const NodeCount& node : nodes) {
    const auto named = by_name_.find(node.node);
    if (node.node.empty() || node.count < 1 || (named == by_name_.end() && !is_told_)) continue;
    const auto place = named == by_name_.end() ? add_held_node(node.node, unused, now.cores) : named->second;
    if (place) now.cores[*place] = std::min(node.count, most_held);
  }
  Places changed = now.cores;
  if (const HeldCores* before = find(allocation)) changed.insert(before->cores.begin(), before->cores.end());
  const auto adjust = [&](const HeldCores& holding, std::int64_t sign) {
    for (const auto& [place, cores] : holding.cores) {
      nodes_[place].held += sign * cores;
      nodes_[place].reserved += sign * holding.unused(place);
    }
  };
  if (const HeldCores* before = find(allocation)) adjust(*before, -1);
  if (allocation.empty() || now.cores.empty()) {
    holdings_.erase(allocation);
  } else {
    for (const auto& [app, name] : allocation_of_) {
      const auto has = name == allocation ? of_.find(app) : of_.end();
      if (has == of_.end()) continue;
      for (const auto& [place, cores] : has->second) now.taken[place] += cores;
    }
    adjust(holdings_[allocation] = std::move(now), 1);
  }
  for (const auto& [place, cores] : changed) {
    if (nodes_[place].is_held_only) set_cores(nodes_[place], nodes_[place].held);
  }
}

void Cores::assign(AppId app, const std::string& allocation) {
  if (allocation_of(app) == allocation) return;
  const auto count_all = [&](std::int64_t sign) {
    HeldCores* holding = find(allocation_of(app));
    const auto has = of_.find(app);
    if (holding == nullptr || has == of_.end()) return;
    for (const auto& [place, cores] : has->second) count(*holding, place, sign * cores);
  };
  count_all(-1);
  if (allocation.empty()) {
    allocation_of_.erase(app);
  } else {
    allocation_of_[app] = allocation;
  }
  count_all(1);
}

const std::string& Cores::allocation_of(AppId app) const {
  static const std::string pool;
  const auto found = allocation_of_.find(app);
  return found == allocation_of_.end() ? pool : found->second;
}

std::string Cores::allocation_in_use(AppId app) const {
  const std::string& name = allocation_of(app);
  return find(name) != nullptr ? name : std::string{};
}

std::vector<std::string> Cores::allocations() const {
  std::vector<std::string> names{""};
  for (const auto& [name, holding] : holdings_) names.push_back(name);
  return names;
}

std::vector<NodeCount> Cores::held_by(const std::string& allocation) const {
  std::vector<NodeCount> nodes;
  const HeldCores* holding = find(allocation);
  if (holding == nullptr) return nodes;
  for (const auto& [place, cores] : holding->cores) nodes.push_back({nodes_[place].name, cores});
  return nodes;
}

std::int64_t Cores::free_in(const std::string& allocation) const {
  if (holdings_.empty()) return free();
  std::int64_t sum = 0;
  if (const HeldCores* holding = find(allocation)) {
    for (const auto& [place, cores] : holding->cores) sum += free_at(place, holding);
    return sum;
  }
  for (std::size_t place = 0; place < nodes_.size(); ++place) sum += free_at(place, nullptr);
  return std::min(sum, free());
}

bool Cores::is_idle(std::string_view node) const {
  const auto named = by_name_.find(std::string{node});
  return named != by_name_.end() && nodes_[named->second].taken == 0;
}

std::vector<NodeUse> Cores::nodes() const {
  std::vector<NodeUse> all;
  for (const NodeState& node : nodes_)
    if (!node.is_away || node.taken > 0) all.push_back({node.name, node.is_away ? 0 : node.cores, node.taken});
  return all;
}

std::int64_t Cores::beyond_on(std::string_view node) const {
  const auto named = by_name_.find(std::string{node});
  if (named == by_name_.end() || nodes_[named->second].is_away) return 0;
  return std::max<std::int64_t>(0, nodes_[named->second].taken - nodes_[named->second].cores);
}

}  // namespace hocket::model
