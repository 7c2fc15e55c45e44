#include "collective_plan/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "collective_plan/testing.hpp"

namespace hocket::collective_plan {
namespace {

using layout::FileView;
using layout::testing::draw;
using layout::testing::Random;

FileView strided(std::int64_t from, std::int64_t block, std::int64_t stride) {
  const auto bytes = layout::contiguous_bytes(block).value();
  return FileView::make(from, layout::resized(0, stride, bytes).value()).value();
}

TEST(Grid, WindowsBeginAtMultiplesOfTheirSize) {
  const Grid grid(layout::Domains::make({30, 250}, 2, 10).value(), 40);
  EXPECT_EQ(grid.domain(0), (Extent{30, 140}));
  EXPECT_EQ(grid.window(0, 0), (Extent{30, 40}));
  EXPECT_EQ(grid.window(0, 1), (Extent{40, 80}));
  EXPECT_EQ(grid.window(0, 3), (Extent{120, 140}));
  EXPECT_EQ(grid.window(1, 0), (Extent{140, 160}));
  EXPECT_EQ(grid.round_of(0, 39), 0);
  EXPECT_EQ(grid.round_of(0, 120), 3);
  EXPECT_EQ(grid.round_of(1, 249), 3);
}

TEST(Pieces, GoThroughTheRoundsOfAllAggregators) {
  const FileView view;  // one contiguous run
  const Grid grid(layout::Domains::make({0, 200}, 2, 10).value(), 50);
  Pieces pieces(view, {0, 200}, grid);
  EXPECT_EQ(pieces.next(), (RoundChunk{0, 0, {0, 50}}));
  EXPECT_EQ(pieces.next(), (RoundChunk{0, 1, {100, 150}}));
  EXPECT_EQ(pieces.next(), (RoundChunk{1, 0, {50, 100}}));
  EXPECT_EQ(pieces.next(), (RoundChunk{1, 1, {150, 200}}));
  EXPECT_EQ(pieces.next(), std::nullopt);
}

TEST(Rounds, PassOverWindowsWithoutData) {
  const FileView view = strided(0, 8, std::int64_t{1} << 40);
  const Grid grid(layout::Domains::make({0, std::int64_t{1} << 42}, 1, 4096).value(), 1 << 20);
  Rounds rounds(grid, 0, {{&view, {0, 32}}, {}});
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto round = rounds.next();
    ASSERT_TRUE(round.has_value());
    EXPECT_EQ(round->span, (Extent{i << 40, (i << 40) + 8}));
    ASSERT_EQ(round->sources.size(), 1U);
    EXPECT_EQ(round->sources[0].data, (Extent{i * 8, i * 8 + 8}));
  }
  EXPECT_FALSE(rounds.next().has_value());
}

// Both ends compute the same chunks in the same order independently; each byte of data is in exactly one chunk.
TEST(Plan, RanksAndAggregatorsAgree) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    layout::testing::Types types(seed, true);
    Random& random = types.random();
    const auto ranks = static_cast<std::size_t>(draw(random, 1, 5));
    std::vector<FileView> views;
    std::vector<Extent> data;
    Extent file{layout::limit, 0};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      views.push_back(random_view(types));
      const std::int64_t first = draw(random, 0, 40);
      data.push_back({first, first + (draw(random, 0, 3) == 0 ? 0 : draw(random, 1, 300))});
      const Extent span = views[rank].span(data[rank]);
      if (data[rank].count() > 0) file = {std::min(file.first, span.first), std::max(file.end, span.end)};
    }
    if (file.end == 0) continue;
    const int aggregators = static_cast<int>(draw(random, 1, 4));
    const Grid grid(layout::Domains::make(file, aggregators, draw(random, 1, 64)).value(), draw(random, 1, 100));
    std::map<std::pair<int, int>, std::vector<RoundChunk>> sent, taken;  // by rank and aggregator
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Pieces pieces(views[rank], data[rank], grid);
      std::int64_t bytes = 0;
      std::pair<std::int64_t, int> before{-1, -1};
      while (const auto piece = pieces.next()) {
        EXPECT_LT(before, std::make_pair(piece->round, piece->aggregator));
        before = {piece->round, piece->aggregator};
        const Extent window = grid.window(piece->aggregator, piece->round);
        const Extent span = views[rank].span(piece->data);
        EXPECT_TRUE(window.first <= span.first && span.end <= window.end);
        bytes += piece->data.count();
        sent[{static_cast<int>(rank), piece->aggregator}].push_back(*piece);
      }
      EXPECT_EQ(bytes, data[rank].count());
    }
    for (int aggregator = 0; aggregator < aggregators; ++aggregator) {
      std::vector<Participant> participants;
      for (std::size_t rank = 0; rank < ranks; ++rank) participants.push_back({&views[rank], data[rank]});
      Rounds rounds(grid, aggregator, participants);
      while (const auto round = rounds.next()) {
        Extent span{layout::limit, 0};
        for (const RoundSource& source : round->sources) {
          taken[{source.rank, aggregator}].push_back({round->round, aggregator, source.data});
          const Extent own = views[static_cast<std::size_t>(source.rank)].span(source.data);
          span = {std::min(span.first, own.first), std::max(span.end, own.end)};
        }
        EXPECT_EQ(round->span, span);
      }
    }
    EXPECT_EQ(sent, taken) << "seed " << seed;
  }
}

TEST(Separate, IsWhatIsOneRunEachWithoutOverlap) {
  EXPECT_TRUE(separate({}));
  EXPECT_TRUE(separate({{{10, 20}, 10}, {{0, 0}, 0}, {{0, 10}, 10}}));
  EXPECT_FALSE(separate({{{10, 20}, 10}, {{0, 11}, 11}}));
  EXPECT_FALSE(separate({{{10, 20}, 9}}));
}

}  // namespace
}  // namespace hocket::collective_plan
