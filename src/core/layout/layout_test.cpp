#include "layout/layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "layout/measure.hpp"
#include "layout/model_testing.hpp"

namespace hocket::layout {
namespace {

using namespace testing;

std::vector<MappedExtent> all(const Layout& layout) {
  std::vector<MappedExtent> result;
  Segments segments(layout.walk());
  while (const std::optional<MappedExtent> segment = segments.next()) result.push_back(*segment);
  return result;
}

// ---- the normal form ---------------------------------------------------------------------------------------------

TEST(Layout, RunsThatTouchAreOne) {
  EXPECT_EQ(valid(contiguous(10, bytes(4))), bytes(40));
  EXPECT_EQ(valid(vector(5, 2, 2, bytes(4))), bytes(40));
  EXPECT_EQ(valid(indexed(Numbers{3, 0, 7}, Numbers{0, 99, 3}, bytes(4))), bytes(40));
  EXPECT_EQ(valid(structure(Numbers{1, 2}, Numbers{0, 8}, std::vector{bytes(8), bytes(16)})), bytes(40));
}

TEST(Layout, EqualLayoutsWrittenDifferentlyAreEqual) {
  const Layout columns = valid(vector(6, 1, 5, bytes(8)));
  EXPECT_EQ(valid(hvector(6, 1, 40, valid(contiguous(2, bytes(4))))), columns);
  EXPECT_EQ(valid(indexed_block(1, Numbers{0, 5, 10, 15, 20, 25}, bytes(8))), columns);
  EXPECT_EQ(valid(hindexed(Numbers{2, 2, 2, 2, 2, 2}, Numbers{0, 40, 80, 120, 160, 200}, bytes(4))), columns);
  const Layout pair = valid(vector(2, 1, 5, bytes(8)));
  EXPECT_EQ(valid(structure(Numbers{1, 1, 1}, Numbers{0, 80, 160}, std::vector{pair, pair, pair})), columns);
  EXPECT_EQ(valid(resized(0, 208, valid(subarray(Numbers{6, 5}, Numbers{6, 1}, Numbers{0, 0}, Order::c, bytes(8))))),
            columns);
  EXPECT_EQ(columns.data().node->kind, NodeKind::vector);
  EXPECT_EQ(columns.data().node->depth, 2);
}

TEST(Layout, AListOfAThreeDimensionalBlockBecomesNestedVectors) {
  Numbers at;
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) at.push_back(1000 + i * 640 + j * 64);
  }
  const Layout list = valid(hindexed_block(24, at, bytes(1)));
  const Layout block = valid(subarray(Numbers{8, 10, 64}, Numbers{4, 5, 24}, Numbers{0, 0, 0}, Order::c, bytes(1)));
  EXPECT_TRUE(same(list.data().node, block.data().node));
  EXPECT_EQ(list.data().at, 1000);
}

TEST(Layout, TheSamePartsAtOtherPlacesAreNotEqual) {
  EXPECT_NE(valid(vector(3, 1, 5, bytes(8))), valid(vector(3, 1, 6, bytes(8))));
  EXPECT_NE(valid(vector(3, 1, 5, bytes(8))), valid(vector(4, 1, 5, bytes(8))));
  EXPECT_NE(valid(hindexed(Numbers{1, 1}, Numbers{0, 10}, bytes(4))),
            valid(hindexed(Numbers{1, 1}, Numbers{2, 12}, bytes(4))));
}

TEST(Layout, WhatIsStridedStaysAFormula) {
  const Layout huge = valid(vector(std::int64_t{1} << 40, 1, 3, valid(vector(1 << 18, 1, 2, bytes(1)))));
  ASSERT_EQ(huge.size(), std::int64_t{1} << 58);
  EXPECT_EQ(huge.data().node->depth, 3);
  EXPECT_EQ(huge.segments(), huge.size());
  EXPECT_EQ(address_of(*huge.data().node, huge.size() - 1), huge.span().end - 1);
}

TEST(Layout, OffsetsOverFourGigabytesAndCountsOverTwoToThe31) {
  const std::int64_t count = std::int64_t{5} << 31;
  const Layout type = valid(vector(count, 1, 4, bytes(8)));
  EXPECT_EQ(type.size(), 8 * count);
  Walk walk = type.walk({8 * (count - 1) + 3, 8 * count});
  EXPECT_EQ(walk.next(), (Strip{8 * (count - 1) + 3, 32 * (count - 1) + 3, 5, 32, 1}));
  EXPECT_EQ(walk.left(), 0);
}

TEST(Layout, WhatIsTooLargeOrNotValidIsAnError) {
  const std::int64_t much = std::int64_t{1} << 40;
  EXPECT_FALSE(contiguous_bytes(-1).ok());
  EXPECT_FALSE(contiguous_bytes(limit + 1).ok());
  EXPECT_TRUE(contiguous_bytes(limit).ok());
  EXPECT_FALSE(contiguous(-1, bytes(4)).ok());
  EXPECT_FALSE(contiguous(much, bytes(much)).ok());
  EXPECT_FALSE(vector(much, 1, much, bytes(8)).ok());
  EXPECT_FALSE(vector(2, 1, std::numeric_limits<std::int64_t>::min(), bytes(8)).ok());
  EXPECT_FALSE(vector(much, much, 0, bytes(1)).ok());
  EXPECT_FALSE(indexed(Numbers{1}, Numbers{std::numeric_limits<std::int64_t>::max()}, bytes(8)).ok());
  EXPECT_FALSE(hindexed(Numbers{1, 1}, Numbers{-limit, limit - 1}, bytes(1)).ok());
  EXPECT_FALSE(hindexed(Numbers{1, 1}, Numbers{-limit, limit - 8}, valid(vector(2, 1, 2, bytes(1)))).ok());
  EXPECT_FALSE(hindexed(Numbers{1, -1}, Numbers{0, 8}, bytes(1)).ok());
  EXPECT_FALSE(hindexed(Numbers{1, 1}, Numbers{0}, bytes(1)).ok());
  EXPECT_FALSE(hindexed(Numbers{limit, limit}, Numbers{0, 0}, bytes(1)).ok());
  EXPECT_FALSE(structure(Numbers{1}, Numbers{0}, std::vector<Layout>{}).ok());
  EXPECT_FALSE(resized(limit, 1, bytes(1)).ok());
  EXPECT_FALSE(resized(1, std::numeric_limits<std::int64_t>::max(), bytes(1)).ok());
}

TEST(Layout, TooManyLevelsAreAnError) {
  Result<Layout> nest = contiguous_bytes(1);
  for (int level = 0; level < max_depth && nest; level += 2) {
    EXPECT_EQ(nest.value().data().node->depth, level + 1);
    nest = hvector(2, 1, nest.value().extent() + 1, nest.value());
    if (nest)
      nest = structure(Numbers{1, 1}, Numbers{0, nest.value().extent() + 5}, std::vector{nest.value(), bytes(1)});
  }
  ASSERT_FALSE(nest.ok());
  EXPECT_THAT(nest.error().text, ::testing::HasSubstr("more than 64 levels"));
}

TEST(Layout, ATypeWithoutDataKeepsItsBounds) {
  const Layout marker = valid(resized(-4, 20, bytes(0)));
  EXPECT_EQ(marker.size(), 0);
  EXPECT_EQ(marker.extent(), 20);
  EXPECT_EQ(valid(contiguous(3, marker)).extent(), 60);
  EXPECT_TRUE(all(marker).empty());
  EXPECT_EQ(valid(contiguous(0, bytes(4))), Layout{});
}

TEST(Layout, SegmentsThatTouchAcrossNodesAreOne) {
  // Each tile has 4 bytes at 0 and at 12 of 16, so the last run of one touches the first of the next.
  const Layout tile = valid(resized(0, 16, valid(hindexed(Numbers{4, 4}, Numbers{0, 12}, bytes(1)))));
  const Layout three = valid(contiguous(3, tile));
  EXPECT_EQ(three.segments(), 4);
  EXPECT_EQ(all(three), (std::vector<MappedExtent>{{0, 0, 4}, {4, 12, 8}, {12, 28, 8}, {20, 44, 4}}));
}

TEST(Layout, AMillionIrregularBlocksAreOneTable) {
  Numbers at;
  Random random(7);
  std::int64_t end = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    at.push_back(end + draw(random, 1, 50));
    end = at.back() + 8;
  }
  const Layout type = valid(hindexed_block(8, at, bytes(1)));
  EXPECT_EQ(type.data().node->kind, NodeKind::blocks);
  EXPECT_EQ(type.segments(), 1'000'000);
  EXPECT_EQ(address_of(*type.data().node, 8 * 777'777 + 5) + type.data().at, at[777'777] + 5);
}

// ---- properties, against the list of all bytes -------------------------------------------------------------------

Numbers unrolled(const Layout& layout, Extent data) {
  Numbers result;
  Segments segments(layout.walk(data));
  std::int64_t position = data.first;
  while (const std::optional<MappedExtent> segment = segments.next()) {
    EXPECT_EQ(segment->data, position);
    EXPECT_GT(segment->length, 0);
    for (std::int64_t i = 0; i < segment->length; ++i) result.push_back(segment->at + i);
    position += segment->length;
  }
  return result;
}

void check_shape(const Both& both) {
  const auto& [layout, model] = both;
  ASSERT_EQ(layout.size(), std::ssize(model.at));
  EXPECT_EQ(layout.lower_bound(), model.lower);
  EXPECT_EQ(layout.upper_bound(), model.upper);
  EXPECT_EQ(layout.ordered(), model.ordered());
  EXPECT_EQ(layout.segments(), model.segments(0, model.at.size()));
  EXPECT_EQ(unrolled(layout, {0, layout.size()}), model.at);
  if (layout.size() == 0) return;
  EXPECT_EQ(layout.span(), (Extent{std::ranges::min(model.at), std::ranges::max(model.at) + 1}));
  EXPECT_EQ(layout.contiguous(), model.ordered() && layout.segments() == 1);
}

void check_questions(const Both& both, Random& random) {
  const auto& [layout, model] = both;
  const TypeNode& node = *layout.data().node;
  const std::int64_t base = layout.data().at;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t first = draw(random, 0, layout.size());
    const Extent data{first, draw(random, first, layout.size())};
    const auto begin = static_cast<std::size_t>(data.first);
    const auto end = static_cast<std::size_t>(data.end);
    EXPECT_EQ(unrolled(layout, data), Numbers(model.at.begin() + data.first, model.at.begin() + data.end));
    EXPECT_EQ(count_segments(node, data), model.segments(begin, end));
    if (first < layout.size()) {
      EXPECT_EQ(base + address_of(node, first), model.at[begin]);
    }
    const std::int64_t address = draw(random, layout.span().first - 2, layout.span().end + 2);
    if (layout.ordered()) {
      EXPECT_EQ(data_below(node, address - base),
                std::ranges::count_if(model.at, [&](std::int64_t at) { return at < address; }));
    }
  }
}

// Checks strips of any length, with seeks between them.
void check_strips(const Both& both, Random& random) {
  const auto& [layout, model] = both;
  Walk walk = layout.walk();
  for (int i = 0; i < 8; ++i) {
    if (draw(random, 0, 3) == 0 || walk.left() == 0) walk.seek(draw(random, 0, layout.size() - 1));
    const std::int64_t position = walk.position();
    const std::int64_t most = draw(random, 1, 40);
    const Strip strip = walk.next(most);
    ASSERT_EQ(strip.data, position);
    ASSERT_GT(strip.bytes(), 0);
    ASSERT_LE(strip.bytes(), most);
    ASSERT_EQ(walk.position(), position + strip.bytes());
    for (std::int64_t byte = 0; byte < strip.bytes(); ++byte) {
      ASSERT_EQ(strip.at + byte / strip.length * strip.stride + byte % strip.length,
                model.at[static_cast<std::size_t>(position + byte)]);
    }
  }
}

TEST(LayoutProperty, RandomTypesAreWhatMpiSays) {
  for (const bool rising : {true, false}) {
    Types types(rising ? 501 : 502, rising);
    for (int i = 0; i < 3000; ++i) {
      SCOPED_TRACE(::testing::Message() << "type " << i << (rising ? " of files" : " of memory"));
      const Both both = types.next();
      check_shape(both);
      if (both.layout.size() > 0 && both.layout.size() <= 4000) {
        check_questions(both, types.random());
        check_strips(both, types.random());
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace hocket::layout
