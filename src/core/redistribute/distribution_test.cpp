#include "redistribute/distribution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hocket::redistribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Distribution, CyclicDealsBlocksInTurn) {
  const ElementDistribution cyclic = ElementDistribution::cyclic(17, 3, 2);
  EXPECT_THAT(cyclic.extents(0), ElementsAre(ElementRange{0, 3}, ElementRange{6, 9}, ElementRange{12, 15}));
  EXPECT_THAT(cyclic.extents(1), ElementsAre(ElementRange{3, 6}, ElementRange{9, 12}, ElementRange{15, 17}));
  EXPECT_EQ(cyclic.length(), 17);
  EXPECT_THAT(ElementDistribution::cyclic(17, 3, 1).extents(0), ElementsAre(ElementRange{0, 17}));
  EXPECT_THAT(ElementDistribution::cyclic(2, 3, 4).extents(3), IsEmpty());
}

TEST(Distribution, TheGridIsAsSquareAsTheNumberAllows) {
  EXPECT_EQ(grid_of(1), (ProcessGrid{1, 1}));
  EXPECT_EQ(grid_of(7), (ProcessGrid{1, 7}));
  EXPECT_EQ(grid_of(12), (ProcessGrid{3, 4}));
  EXPECT_EQ(grid_of(16), (ProcessGrid{4, 4}));
}

TEST(Distribution, RectanglesFollowTheRowsOfTheGrid) {
  // 5 × 5 elements over 2 × 2 processes.
  EXPECT_EQ(rectangle_of(5, 5, 4, 1), (Rectangle{{0, 3}, {3, 5}}));
  EXPECT_EQ(rectangle_of(5, 5, 4, 2), (Rectangle{{3, 5}, {0, 3}}));
  const ElementDistribution matrix = ElementDistribution::rectangles(5, 5, 4);
  EXPECT_THAT(matrix.extents(1), ElementsAre(ElementRange{3, 5}, ElementRange{8, 10}, ElementRange{13, 15}));
  EXPECT_THAT(ElementDistribution::rectangles(4, 3, 1).extents(0), ElementsAre(ElementRange{0, 12}));
  EXPECT_THAT(ElementDistribution::rectangles(0, 3, 2).extents(1), IsEmpty());
}

// Each of some shapes gives each element to exactly one part.
TEST(DistributionProperty, EveryElementHasOneOwner) {
  for (int parts = 1; parts <= 9; ++parts) {
    for (std::int64_t a = 0; a <= 12; ++a) {
      for (std::int64_t b = 1; b <= 7; ++b) {
        for (const ElementDistribution& made :
             {ElementDistribution::cyclic(a, b, parts), ElementDistribution::rectangles(a, b, parts)}) {
          std::vector<Extents> lists;
          for (int k = 0; k < parts; ++k) lists.push_back(made.extents(k));
          ASSERT_EQ(complaint(made.length(), lists), "") << a << ' ' << b << ' ' << parts;
        }
      }
    }
  }
}

TEST(Distribution, ListsAreChecked) {
  EXPECT_EQ(complaint(5, {{{0, 2}, {4, 5}}, {{2, 4}}}), "");
  EXPECT_EQ(complaint(0, {{}, {}}), "");
  EXPECT_THAT(complaint(5, {{{0, 2}}, {{3, 5}}}), HasSubstr("element 2 belongs to no rank"));
  EXPECT_THAT(complaint(5, {{{0, 4}}}), HasSubstr("element 4 belongs to no rank"));
  EXPECT_THAT(complaint(5, {{{0, 3}}, {{2, 5}}}), HasSubstr("element 2 belongs to two ranks"));
  EXPECT_THAT(complaint(5, {{{3, 5}, {0, 3}}}), HasSubstr("elements 0 to 2 of rank 0"));
  EXPECT_THAT(complaint(5, {{{0, 6}}}), HasSubstr("must ascend within the array's 5 elements"));
  EXPECT_THAT(complaint(5, {{}, {{2, 2}, {0, 5}}}), HasSubstr("of rank 1"));
  EXPECT_THAT(complaint(5, {{{-1, 5}}}), HasSubstr("must ascend"));
}

}  // namespace
}  // namespace hocket::redistribute
