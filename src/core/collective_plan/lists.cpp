#include "collective_plan/lists.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace hocket::collective_plan {

std::vector<std::vector<RoundEntry>> entries(const layout::FileView& view, Extent data, const Grid& grid) {
  std::vector<std::vector<RoundEntry>> all(static_cast<std::size_t>(grid.aggregators()));
  Pieces pieces(view, data, grid);
  while (const std::optional<RoundChunk> piece = pieces.next()) {
    const Extent span = view.span(piece->data);
    all[static_cast<std::size_t>(piece->aggregator)].push_back(
        {piece->round, piece->data.first, piece->data.count(), span.first, span.end, view.count_segments(piece->data)});
  }
  return all;
}

std::optional<Agenda> Agenda::make(const Grid& grid, int aggregator, std::vector<std::vector<RoundEntry>> entries) {
  for (const std::vector<RoundEntry>& ranks : entries) {
    std::int64_t before = -1;
    for (const RoundEntry& entry : ranks) {
      if (entry.round <= before) return std::nullopt;
      before = entry.round;
      const Extent window = grid.window(aggregator, entry.round);
      // A wrong entry would make the aggregator read or write outside of its buffer.
      const bool within = entry.first >= 0 && entry.bytes > 0 && entry.low >= window.first && entry.low < entry.end &&
                          entry.end <= window.end && entry.bytes <= entry.end - entry.low && entry.segments > 0 &&
                          entry.segments <= entry.bytes;
      if (!within) return std::nullopt;
    }
  }
  return Agenda(std::move(entries));
}

std::optional<Round> Agenda::next() {
  std::optional<std::int64_t> first;
  for (std::size_t rank = 0; rank < entries_.size(); ++rank)
    if (done_[rank] < entries_[rank].size())
      first = std::min(first.value_or(layout::limit), entries_[rank][done_[rank]].round);
  if (!first) return std::nullopt;
  Round round{*first, {layout::limit, 0}, {}};
  for (std::size_t rank = 0; rank < entries_.size(); ++rank) {
    if (done_[rank] == entries_[rank].size()) continue;
    const RoundEntry& entry = entries_[rank][done_[rank]];
    if (entry.round != *first) continue;
    ++done_[rank];
    round.span = {std::min(round.span.first, entry.low), std::max(round.span.end, entry.end)};
    round.sources.push_back({static_cast<int>(rank), {entry.first, entry.first + entry.bytes}, entry.segments});
  }
  return round;
}

void write_list(const layout::FileView& view, Extent data, std::int64_t origin, std::span<std::byte> list) {
  layout::Segments segments = view.segments(data);
  std::byte* to = list.data();
  while (const std::optional<layout::MappedExtent> segment = segments.next()) {
    const std::array<std::uint32_t, 2> pair = {static_cast<std::uint32_t>(segment->at - origin),
                                               static_cast<std::uint32_t>(segment->length)};
    std::memcpy(to, pair.data(), sizeof pair);
    to += sizeof pair;
  }
}

std::optional<layout::Layout> read_list(std::span<const std::byte> list, std::int64_t bytes, std::int64_t origin,
                                        Extent span) {
  std::vector<std::int64_t> lengths, offsets;
  std::int64_t end = span.first, sum = 0;
  for (; !list.empty(); list = list.subspan(list_bytes_per_segment)) {
    std::array<std::uint32_t, 2> pair{};
    if (list.size() < sizeof pair) return std::nullopt;
    std::memcpy(pair.data(), list.data(), sizeof pair);
    const std::int64_t offset = origin + pair[0], length = pair[1];
    if (offset < end || length == 0) return std::nullopt;
    offsets.push_back(offset);
    lengths.push_back(length);
    end = offset + length;
    sum += length;
  }
  if (sum != bytes || end > span.end) return std::nullopt;
  Result<layout::Layout> layout = layout::hindexed(lengths, offsets, layout::contiguous_bytes(1).value());
  if (!layout) return std::nullopt;
  return std::move(layout).value();
}

bool views_can_be_kept(std::span<const Description> ranks) {
  std::int64_t kept = 0;
  for (const Description& rank : ranks) kept += rank.view_bytes;
  return kept <= most_view_bytes;
}

bool lists_are_shorter(std::span<const Description> ranks, int aggregators) {
  std::int64_t views = 0, lists = 0;
  for (const Description& rank : ranks) {
    views += rank.view_is_new ? rank.view_bytes * aggregators : 0;
    lists += rank.segments * list_bytes_per_segment;
  }
  return views > lists;
}

}  // namespace hocket::collective_plan
