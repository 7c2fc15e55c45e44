#include "collective_plan/slow_aggregators.hpp"

#include <algorithm>
#include <iterator>

namespace hocket::collective_plan {

bool SlowAggregators::is_out(int rank) const {
  const auto found = held_off_.find(rank);
  return found != held_off_.end() && now_ < found->second.back;
}

std::vector<SlowAggregators::Slow> SlowAggregators::take(std::span<const AggregatorWork> work, Time now) {
  std::vector<Slow> slow;
  now_ = now;
  for (const int rank : peers_) {
    if (is_out(rank)) continue;
    const AggregatorWork& own = work[static_cast<std::size_t>(rank)];
    const auto found = detector_.report(id_of(rank), {own.operations, own.bytes, own.service, 0, 0, {}}, now);
    if (!found) continue;
    HeldOff& held = held_off_[rank];
    held.length = model::next_hold_off(first_hold_off, held.length, held.back, now);
    held.back = now + held.length;
    detector_.leave(id_of(rank));
    slow.push_back({rank, found->service, found->peers, held.length});
  }
  return slow;
}

std::vector<int> SlowAggregators::keep(std::span<const int> chosen) {
  std::vector<int> kept;
  std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(kept), [&](int rank) { return !is_out(rank); });
  if (kept.empty()) kept.assign(chosen.begin(), chosen.end());
  if (kept == peers_) return kept;
  const auto among = [](const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  for (const int rank : peers_)
    if (!among(kept, rank)) detector_.leave(id_of(rank));
  for (const int rank : kept)
    if (!among(peers_, rank)) detector_.enter(id_of(rank));
  peers_ = kept;
  return kept;
}

}  // namespace hocket::collective_plan
