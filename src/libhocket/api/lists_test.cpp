#include "api/lists.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/splitmix.hpp"

namespace hocket::api {
namespace {

using Numbers = std::vector<std::int64_t>;

Result<Shape> shape(const Numbers& offsets, const Numbers& lengths) { return shape_of(ExtentList{offsets, lengths}); }

std::string fault(const Numbers& offsets, const Numbers& lengths) {
  const auto made = shape(offsets, lengths);
  return made ? "none" : made.error().text;
}

TEST(ExtentLists, WhatIsNoListIsRefusedByName) {
  EXPECT_EQ(fault({0, -1}, {1, 1}), "'offsets[1]' is -1; it must be at least 0 and below 2^62");
  EXPECT_EQ(fault({-1}, {0}), "'offsets[0]' is -1; it must be at least 0 and below 2^62");
  EXPECT_EQ(fault({layout::limit}, {0}), "'offsets[0]' is 4611686018427387903; it must be at least 0 and below 2^62");
  EXPECT_EQ(fault({0, 8, 16}, {8, 8, -3}), "'bytes[2]' is -3; it must be at least 0");
  EXPECT_EQ(fault({layout::limit - 2}, {3}),
            "'bytes[0]' is 3; with 'offsets[0]' is 4611686018427387901, the data would end beyond the longest file, "
            "2^62 bytes");
  EXPECT_EQ(fault({0}, {std::numeric_limits<std::int64_t>::max()}).substr(0, 36),
            "'bytes[0]' is 9223372036854775807; w");
  EXPECT_EQ(fault({0, 1}, {layout::limit, 1}).substr(0, 16), "'bytes[1]' is 1;");
}

TEST(ExtentLists, OverlapsAreRefusedWhateverTheOrder) {
  EXPECT_EQ(fault({40, 0, 35}, {5, 8, 10}),
            "'offsets[0]' is 40, within the 10 bytes from 'offsets[2]', 35, on; extents of one call must not overlap");
  EXPECT_EQ(fault({7, 7}, {1, 1}).substr(0, 48), "'offsets[1]' is 7, within the 1 bytes from 'offs");
  EXPECT_EQ(fault({7, 7, 3}, {1, 0, 4}), "none") << "an extent without data overlaps none";
  EXPECT_EQ(fault({0, 0}, {100, 5}).substr(0, 18), "'offsets[1]' is 0,");
}

TEST(ExtentLists, ListsWithoutDataAreValid) {
  EXPECT_EQ(shape({}, {}).value().bytes(), 0);
  EXPECT_EQ(shape({5, 5, 1}, {0, 0, 0}).value().bytes(), 0);
}

TEST(ExtentLists, TheLastBytesOfTheLongestFileCanBeNamed) {
  const auto made = shape({layout::limit - 2, 0}, {2, 1});
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_EQ(made.value().view.span({0, 3}), (layout::Extent{0, layout::limit}));
}

TEST(ExtentLists, ExtentsThatTouchInFileAndMemoryAreOneRun) {
  const auto made = shape({10, 15}, {5, 7});
  EXPECT_TRUE(made.value().view.contiguous());
  EXPECT_TRUE(made.value().memory.contiguous());
}

// Compares with a model: each byte of the file, and the byte of memory that the list gives it.
TEST(ExtentListsProperties, EachByteOfTheFileHasTheByteOfMemoryThatTheListGivesIt) {
  std::uint64_t state = 24;
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(splitmix(state += splitmix_step) % static_cast<std::uint64_t>(most + 1));
  };
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    std::vector<std::pair<std::int64_t, std::int64_t>> extents;
    for (std::int64_t at = draw(20), left = draw(30); left > 0; --left) {
      extents.emplace_back(at, draw(3) == 0 ? 0 : draw(9));
      at += extents.back().second + (draw(1) == 0 ? 0 : draw(12));
    }
    if (draw(2) > 0)
      for (std::size_t i = extents.size(); i > 1; --i)
        std::swap(extents[i - 1], extents[static_cast<std::size_t>(draw(static_cast<std::int64_t>(i) - 1))]);
    Numbers offsets, lengths, expected(600, -1);
    std::int64_t bytes = 0;
    for (const auto& [at, length] : extents) {
      offsets.push_back(at);
      lengths.push_back(length);
      for (std::int64_t i = 0; i < length; ++i) expected[static_cast<std::size_t>(at + i)] = bytes++;
    }
    const auto made = shape(offsets, lengths);
    ASSERT_TRUE(made) << made.error().text;
    ASSERT_EQ(made.value().bytes(), bytes);
    Numbers got(600, -1);
    for (std::int64_t i = 0; i < bytes; ++i) {
      layout::Walk memory = made.value().memory.walk({i, i + 1});
      got[static_cast<std::size_t>(made.value().view.offset(i))] = memory.next().at;
    }
    ASSERT_EQ(got, expected);
  }
}

}  // namespace
}  // namespace hocket::api
