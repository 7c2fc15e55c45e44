#include "redistribute/plan.hpp"

#include <algorithm>
#include <optional>

namespace hocket::redistribute {
namespace {

std::optional<int> index_of(const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end()) return std::nullopt;
  return static_cast<int>(found - ranks.begin());
}

ElementRange held(const Partition& partition, const std::vector<int>& ranks, int rank) {
  const std::optional<int> k = index_of(ranks, rank);
  return k ? partition.part(*k) : ElementRange{};
}

ElementRange common(ElementRange a, ElementRange b) {
  const ElementRange both{std::max(a.first, b.first), std::min(a.end, b.end)};
  return both.first < both.end ? both : ElementRange{};
}

// Intersects the range `mine` with the parts of the other side, except for `rank`'s own part.
std::vector<Message> messages(ElementRange mine, const Partition& other, const std::vector<int>& peers, int rank) {
  std::vector<Message> result;
  if (mine.count() == 0) return result;
  const auto bounds = other.bounds();
  // The first part to consider contains the first element: it is the last one that begins at or before it.
  const auto after = std::upper_bound(bounds.begin(), bounds.end(), mine.first);
  for (int k = static_cast<int>(after - bounds.begin()) - 1; k < other.parts(); ++k) {
    const ElementRange theirs = other.part(k);
    if (theirs.first >= mine.end) break;
    const ElementRange both = common(mine, theirs);
    const int peer = peers[static_cast<std::size_t>(k)];
    if (both.count() > 0 && peer != rank) result.push_back({peer, both, theirs.first});
  }
  return result;
}

}  // namespace

RedistributionPlan plan(const Partition& before, const Partition& after, const Roles& roles, int rank) {
  RedistributionPlan mine;
  mine.before = held(before, roles.sources, rank);
  mine.after = held(after, roles.targets, rank);
  mine.kept = common(mine.before, mine.after);
  mine.sends = messages(mine.before, after, roles.targets, rank);
  mine.receives = messages(mine.after, before, roles.sources, rank);
  return mine;
}

RedistributionPlan plan_replicated(std::int64_t length, const Roles& roles, int rank) {
  const ElementRange all{0, length};
  std::vector<int> sources = roles.sources;
  std::sort(sources.begin(), sources.end());
  const auto is_source = [&](int r) { return std::binary_search(sources.begin(), sources.end(), r); };

  RedistributionPlan mine;
  if (is_source(rank)) mine.before = all;
  if (index_of(roles.targets, rank)) mine.after = all;
  mine.kept = common(mine.before, mine.after);
  if (length == 0) return mine;
  std::size_t turn = 0;
  for (const int target : roles.targets) {
    if (is_source(target)) continue;
    const int source = roles.sources[turn++ % roles.sources.size()];
    if (source == rank) mine.sends.push_back({target, all, 0});
    if (target == rank) mine.receives.push_back({source, all, 0});
  }
  return mine;
}

}  // namespace hocket::redistribute
