#include "redistribute/order.hpp"

#include <algorithm>
#include <limits>

namespace hocket::redistribute {

Overlap::Overlap(int sources, int parts) : parts_(parts), bytes_(static_cast<std::size_t>(sources)) {}

double Overlap::bytes(int source, int part) const {
  const auto& of_source = bytes_[static_cast<std::size_t>(source)];
  const auto found = of_source.find(part);
  return found == of_source.end() ? 0 : found->second;
}

void Overlap::add(const ElementDistribution& before, const ElementDistribution& after, double element_bytes) {
  // One sweep over the extents of all parts of both sides, in ascending order.
  struct Owned {
    ElementRange range;
    int part;
  };
  const auto sorted = [](const ElementDistribution& distribution) {
    std::vector<Owned> all;
    for (int k = 0; k < distribution.parts(); ++k)
      for (const ElementRange& range : distribution.extents(k)) all.push_back({range, k});
    std::sort(all.begin(), all.end(), [](const Owned& a, const Owned& b) { return a.range.first < b.range.first; });
    return all;
  };
  const std::vector<Owned> old = sorted(before);
  const std::vector<Owned> next = sorted(after);
  for (std::size_t i = 0, j = 0; i < old.size() && j < next.size();) {
    const std::int64_t common =
        std::min(old[i].range.end, next[j].range.end) - std::max(old[i].range.first, next[j].range.first);
    if (common > 0)
      bytes_[static_cast<std::size_t>(old[i].part)][next[j].part] += static_cast<double>(common) * element_bytes;
    if (old[i].range.end < next[j].range.end)
      ++i;
    else
      ++j;
  }
}

namespace {

// How the best order of the first i sources and j parts ends.
enum class Step : std::uint8_t { none, place, leave, join };

}  // namespace

// Aligns sources and parts by dynamic programming: best[j] is the most that the sources so far keep in the first j
// parts. O(sources * parts).
std::vector<int> order_of_parts(const Overlap& overlap, std::span<const Fate> fates) {
  constexpr double impossible = -std::numeric_limits<double>::infinity();
  const auto sources = static_cast<std::size_t>(overlap.sources());
  const auto parts = static_cast<std::size_t>(overlap.parts());
  const bool grows = sources < parts;
  std::vector<std::vector<Step>> steps(sources + 1, std::vector<Step>(parts + 1, Step::none));
  std::vector<double> best(parts + 1, impossible);
  best[0] = 0;
  for (std::size_t i = 1; i <= sources; ++i) {
    std::vector<double> now(parts + 1, impossible);
    for (std::size_t j = 0; j <= parts; ++j) {
      const auto offer = [&](double bytes, Step step) {
        if (bytes <= now[j]) return;
        now[j] = bytes;
        steps[i][j] = step;
      };
      // Source 0 gets part 0, so no part comes before it. Among equals an early part wins: then the memory of the
      // source is more often cut in place.
      if (j > 0 && grows) offer(now[j - 1], Step::join);
      if (fates[i - 1] != Fate::stays) offer(best[j], Step::leave);
      if (j > 0 && fates[i - 1] != Fate::leaves)
        offer(best[j - 1] + overlap.bytes(static_cast<int>(i - 1), static_cast<int>(j - 1)), Step::place);
    }
    best = std::move(now);
  }
  std::vector<int> order(parts, newcomer);
  for (std::size_t i = sources, j = parts; i > 0 || j > 0;) {
    const Step step = steps[i][j];
    if (step == Step::none) break;  // not reached if the preconditions hold
    if (step == Step::place) order[j - 1] = static_cast<int>(i - 1);
    if (step != Step::join) --i;
    if (step != Step::leave) --j;
  }
  return order;
}

}  // namespace hocket::redistribute
