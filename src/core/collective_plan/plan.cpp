#include "collective_plan/plan.hpp"

#include <algorithm>

namespace hocket::collective_plan {

Extent Grid::window(int aggregator, std::int64_t round) const {
  const Extent all = domain(aggregator);
  const std::int64_t first = (all.first / window_ + round) * window_;
  return {std::clamp(first, all.first, all.end), std::clamp(first + window_, all.first, all.end)};
}

Pieces::Pieces(const layout::FileView& view, Extent data, const Grid& grid) : view_(view), grid_(grid) {
  for (int aggregator = 0; data.count() > 0 && aggregator < grid.aggregators(); ++aggregator)
    push(aggregator, view.data_in(data, grid.domain(aggregator)));
}

bool Pieces::later(const RemainingData& a, const RemainingData& b) {
  return a.round != b.round ? a.round > b.round : a.aggregator > b.aggregator;
}

void Pieces::push(int aggregator, Extent data) {
  if (data.count() == 0) return;
  heap_.push_back({grid_.round_of(aggregator, view_.offset(data.first)), aggregator, data});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

std::optional<RoundChunk> Pieces::next() {
  if (heap_.empty()) return std::nullopt;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const RemainingData left = heap_.back();
  heap_.pop_back();
  const Extent data = view_.data_in(left.data, grid_.window(left.aggregator, left.round));
  push(left.aggregator, {data.end, left.data.end});
  return RoundChunk{left.round, left.aggregator, data};
}

Rounds::Rounds(const Grid& grid, int aggregator, std::vector<Participant> participants)
    : grid_(grid), aggregator_(aggregator), left_(std::move(participants)) {
  for (Participant& participant : left_)
    if (participant.view && participant.data.count() > 0)
      participant.data = participant.view->data_in(participant.data, grid.domain(aggregator));
}

std::optional<Round> Rounds::next() {
  std::optional<std::int64_t> first;
  for (const Participant& participant : left_) {
    if (participant.data.count() == 0) continue;
    const std::int64_t round = grid_.round_of(aggregator_, participant.view->offset(participant.data.first));
    first = std::min(first.value_or(round), round);
  }
  if (!first) return std::nullopt;
  Round round{*first, {layout::limit, 0}, {}};
  for (std::size_t rank = 0; rank < left_.size(); ++rank) {
    Participant& participant = left_[rank];
    if (participant.data.count() == 0) continue;
    const Extent data = participant.view->data_in(participant.data, grid_.window(aggregator_, *first));
    if (data.count() == 0) continue;
    const Extent span = participant.view->span(data);
    round.span = {std::min(round.span.first, span.first), std::max(round.span.end, span.end)};
    round.sources.push_back({static_cast<int>(rank), data, 0});
    participant.data.first = data.end;
  }
  return round;
}

bool separate(std::vector<AccessExtent> extents) {
  std::erase_if(extents, [](const AccessExtent& extent) { return extent.bytes == 0; });
  std::sort(extents.begin(), extents.end(),
            [](const AccessExtent& a, const AccessExtent& b) { return a.span.first < b.span.first; });
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i].span.count() != extents[i].bytes) return false;
    if (i > 0 && extents[i].span.first < extents[i - 1].span.end) return false;
  }
  return true;
}

}  // namespace hocket::collective_plan
