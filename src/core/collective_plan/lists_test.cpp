#include "collective_plan/lists.hpp"

#include <gtest/gtest.h>

#include "collective_plan/testing.hpp"

namespace hocket::collective_plan {
namespace {

using layout::FileView;
using layout::testing::draw;

// Both ways to compute the rounds of an aggregator give the same result, but for the numbers of segments.
TEST(Agenda, HasTheRoundsThatViewsHave) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    layout::testing::Types types(seed, true);
    const std::vector<FileView> views = {random_view(types), random_view(types), random_view(types)};
    std::vector<Participant> participants;
    Extent file{layout::limit, 0};
    for (const FileView& view : views) {
      const std::int64_t first = draw(types.random(), 0, 30);
      participants.push_back({&view, {first, first + draw(types.random(), 1, 300)}});
      const Extent span = view.span(participants.back().data);
      file = {std::min(file.first, span.first), std::max(file.end, span.end)};
    }
    const int aggregators = static_cast<int>(draw(types.random(), 1, 3));
    const Grid grid(layout::Domains::make(file, aggregators, 16).value(), draw(types.random(), 20, 200));
    for (int aggregator = 0; aggregator < aggregators; ++aggregator) {
      std::vector<std::vector<RoundEntry>> told;
      for (const Participant& participant : participants)
        told.push_back(entries(*participant.view, participant.data, grid)[static_cast<std::size_t>(aggregator)]);
      std::optional<Agenda> agenda = Agenda::make(grid, aggregator, told);
      ASSERT_TRUE(agenda) << "seed " << seed;
      Rounds rounds(grid, aggregator, participants);
      for (;;) {
        const std::optional<Round> expected = rounds.next(), round = agenda->next();
        ASSERT_EQ(round.has_value(), expected.has_value()) << "seed " << seed;
        if (!round) break;
        EXPECT_EQ(round->round, expected->round);
        EXPECT_EQ(round->span, expected->span);
        ASSERT_EQ(round->sources.size(), expected->sources.size()) << "seed " << seed;
        for (std::size_t i = 0; i < round->sources.size(); ++i) {
          const RoundSource& source = round->sources[i];
          EXPECT_EQ(source.rank, expected->sources[i].rank);
          EXPECT_EQ(source.data, expected->sources[i].data);
          EXPECT_EQ(source.segments, views[static_cast<std::size_t>(source.rank)].count_segments(source.data));
        }
      }
    }
  }
}

TEST(Agenda, RefusesWhatCannotBe) {
  const Grid grid(layout::Domains::make({0, 1000}, 1, 10).value(), 100);
  const RoundEntry good{1, 0, 20, 110, 190, 2};
  EXPECT_TRUE(Agenda::make(grid, 0, {{good}}));
  EXPECT_FALSE(Agenda::make(grid, 0, {{good, good}})) << "the same round twice";
  for (const RoundEntry& bad :
       {RoundEntry{1, 0, 20, 90, 190, 2}, RoundEntry{1, 0, 20, 110, 210, 2}, RoundEntry{1, 0, 90, 110, 190, 2},
        RoundEntry{1, 0, 20, 110, 190, 21}, RoundEntry{1, 0, 20, 110, 190, 0}, RoundEntry{1, -1, 20, 110, 190, 2},
        RoundEntry{1, 0, 0, 110, 190, 2}, RoundEntry{50, 0, 20, 110, 190, 2}})
    EXPECT_FALSE(Agenda::make(grid, 0, {{bad}}));
}

TEST(Lists, AreTheRunsOfTheData) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    layout::testing::Types types(seed, true);
    const FileView view = random_view(types);
    const std::int64_t first = draw(types.random(), 0, 40);
    const Extent data{first, first + draw(types.random(), 1, 300)};
    const Extent span = view.span(data);
    const std::int64_t origin = span.first - draw(types.random(), 0, std::min<std::int64_t>(span.first, 50));
    std::vector<std::byte> list(static_cast<std::size_t>(view.count_segments(data) * list_bytes_per_segment));
    write_list(view, data, origin, list);
    const std::optional<layout::Layout> runs = read_list(list, data.count(), origin, span);
    ASSERT_TRUE(runs) << "seed " << seed;
    layout::Segments theirs(runs->walk()), ours = view.segments(data);
    for (;;) {
      const auto a = theirs.next(), b = ours.next();
      ASSERT_EQ(a.has_value(), b.has_value()) << "seed " << seed;
      if (!a) break;
      EXPECT_EQ(a->at, b->at);
      EXPECT_EQ(a->length, b->length);
    }
    EXPECT_FALSE(read_list(list, data.count() + 1, origin, span)) << "another number of bytes";
    EXPECT_FALSE(read_list(list, data.count(), origin, {span.first, span.end - 1})) << "beyond the span";
    EXPECT_FALSE(read_list(list, data.count(), origin - 1, span)) << "before the span";
    EXPECT_FALSE(read_list(std::span(list).first(list.size() - 1), data.count(), origin, span)) << "cut off";
  }
}

TEST(Method, IsTheShorterDescription) {
  const Description formula{100, true, 1000000}, table{3000000, true, 1000}, known{3000000, false, 1000};
  EXPECT_FALSE(lists_are_shorter(std::vector{formula, formula}, 4));
  EXPECT_TRUE(lists_are_shorter(std::vector{table, Description{100, true, 10}}, 4));
  EXPECT_FALSE(lists_are_shorter(std::vector{known, known}, 4)) << "the aggregators have the views";
  EXPECT_TRUE(views_can_be_kept(std::vector{known, table}));
  EXPECT_FALSE(views_can_be_kept(std::vector(30, known)));
}

}  // namespace
}  // namespace hocket::collective_plan
