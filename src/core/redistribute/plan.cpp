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

// Extents of a rank with the position of each in its memory.
struct PlacedExtents {
  Extents extents;
  std::vector<std::int64_t> places;
  std::int64_t count = 0;
};

PlacedExtents placed(Extents extents) {
  PlacedExtents all{std::move(extents), {}, 0};
  all.places.reserve(all.extents.size());
  for (const ElementRange& range : all.extents) {
    all.places.push_back(all.count);
    all.count += range.count();
  }
  return all;
}

PlacedExtents held(const ElementDistribution& distribution, const std::vector<int>& ranks, int rank) {
  const std::optional<int> k = index_of(ranks, rank);
  return k ? placed(distribution.extents(*k)) : PlacedExtents{};
}

// Returns the first extent that ends behind `element`.
std::size_t first_behind(const Extents& extents, std::int64_t element) {
  return static_cast<std::size_t>(
      std::partition_point(extents.begin(), extents.end(), [&](const ElementRange& r) { return r.end <= element; }) -
      extents.begin());
}

// Calls `found(i, j, range)` for each range of elements that is part of a[i] and of b[j], in ascending order.
template <class Found>
void for_common(const Extents& a, const Extents& b, Found found) {
  if (a.empty() || b.empty()) return;
  std::size_t i = first_behind(a, b.front().first);
  std::size_t j = first_behind(b, a.front().first);
  while (i < a.size() && j < b.size()) {
    const ElementRange both{std::max(a[i].first, b[j].first), std::min(a[i].end, b[j].end)};
    if (both.count() > 0) found(i, j, both);
    // The extent that ends first has nothing in common with a later one.
    if (a[i].end < b[j].end)
      ++i;
    else
      ++j;
  }
}

// Returns the places of `mine` whose elements are part of `theirs`.
Extents common_places(const PlacedExtents& mine, const Extents& theirs) {
  Extents places;
  for_common(mine.extents, theirs, [&](std::size_t i, std::size_t, ElementRange both) {
    const std::int64_t at = mine.places[i] + (both.first - mine.extents[i].first);
    if (!places.empty() && places.back().end == at)
      places.back().end += both.count();
    else
      places.push_back({at, at + both.count()});
  });
  return places;
}

// Returns the parts of `other` that can have elements in common with `mine`.
ElementRange candidates(const PlacedExtents& mine, const ElementDistribution& other) {
  if (mine.count == 0) return {};
  const Partition* const ranges = other.ranges();
  if (!ranges) return {0, other.parts()};
  const auto bounds = ranges->bounds();
  // The first part to consider contains the first element: it is the last one that begins at or before it.
  const auto first = std::upper_bound(bounds.begin(), bounds.end(), mine.extents.front().first) - bounds.begin() - 1;
  const auto end = std::lower_bound(bounds.begin(), bounds.end(), mine.extents.back().end) - bounds.begin();
  return {first, std::min<std::int64_t>(end, ranges->parts())};
}

// Intersects `mine` with the parts of the other side, except for `rank`'s own part.
std::vector<Message> messages(const PlacedExtents& mine, const ElementDistribution& other,
                              const std::vector<int>& peers, int rank) {
  std::vector<Message> result;
  const ElementRange parts = candidates(mine, other);
  for (std::int64_t k = parts.first; k < parts.end; ++k) {
    const int peer = peers[static_cast<std::size_t>(k)];
    if (peer == rank) continue;
    Extents places = common_places(mine, other.extents(static_cast<int>(k)));
    if (!places.empty()) result.push_back({peer, std::move(places)});
  }
  return result;
}

std::vector<KeptElements> kept(const PlacedExtents& before, const PlacedExtents& after) {
  std::vector<KeptElements> result;
  for_common(before.extents, after.extents, [&](std::size_t i, std::size_t j, ElementRange both) {
    const std::int64_t from = before.places[i] + (both.first - before.extents[i].first);
    const std::int64_t to = after.places[j] + (both.first - after.extents[j].first);
    const bool follows = !result.empty() && result.back().from + result.back().count == from &&
                         result.back().to + result.back().count == to;
    if (follows)
      result.back().count += both.count();
    else
      result.push_back({from, to, both.count()});
  });
  return result;
}

}  // namespace

std::int64_t RedistributionPlan::kept_count() const {
  std::int64_t elements = 0;
  for (const KeptElements& k : kept) elements += k.count;
  return elements;
}

RedistributionPlan plan(const ElementDistribution& before, const ElementDistribution& after, const Roles& roles,
                        int rank) {
  const PlacedExtents mine_before = held(before, roles.sources, rank);
  const PlacedExtents mine_after = held(after, roles.targets, rank);
  return {mine_before.count, mine_after.count, kept(mine_before, mine_after),
          messages(mine_before, after, roles.targets, rank), messages(mine_after, before, roles.sources, rank)};
}

RedistributionPlan plan_replicated(std::int64_t before, std::int64_t after, const Roles& roles, int rank) {
  const std::int64_t common = std::min(before, after);
  std::vector<int> sources = roles.sources;
  std::sort(sources.begin(), sources.end());
  const auto is_source = [&](int r) { return std::binary_search(sources.begin(), sources.end(), r); };
  const bool is_target = index_of(roles.targets, rank).has_value();

  RedistributionPlan mine;
  if (is_source(rank)) mine.before = before;
  if (is_target) mine.after = after;
  if (common == 0) return mine;
  if (is_source(rank) && is_target) mine.kept.push_back({0, 0, common});
  std::size_t turn = 0;
  for (const int target : roles.targets) {
    if (is_source(target)) continue;
    const int source = roles.sources[turn++ % roles.sources.size()];
    if (source == rank) mine.sends.push_back({target, {{0, common}}});
    if (target == rank) mine.receives.push_back({source, {{0, common}}});
  }
  return mine;
}

}  // namespace hocket::redistribute
