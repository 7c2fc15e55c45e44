#include "api/access.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/splitmix.hpp"

namespace hocket::api {
namespace {

constexpr std::int64_t stripe = layout::stripe_bytes;

std::vector<io_client::Chunk> chunks(const Pattern& pattern, std::size_t servers) {
  const auto view = view_of(pattern);
  EXPECT_TRUE(view);
  const io_client::Local local{true, view.value(), {0, pattern.bytes()}, {}};
  FileChunks each{local, servers};
  std::vector<io_client::Chunk> all;
  while (const auto chunk = each.next()) all.push_back(*chunk);
  return all;
}

// Computes an offset from the definition in the header alone.
std::int64_t offset_in(const Pattern& pattern, std::int64_t data) {
  return pattern.offset + data / pattern.block * pattern.stride + data % pattern.block;
}

TEST(FileAccess, RefusesWhatIsNoPattern) {
  EXPECT_EQ(view_of({-1, 1, 1, 1}).error().text, "'offset' is -1; it must be at least 0 and below 2^62");
  EXPECT_EQ(view_of({0, -4, 1, 1}).error().text, "'bytes' is -4; it must be at least 0");
  EXPECT_EQ(view_of({0, 4, 4, -2}).error().text, "'count' is -2; it must be at least 0");
  EXPECT_EQ(view_of({0, 4, 3, 2}).error().text, "'stride_bytes' is 3; it must be at least block_bytes, which is 4");
  const std::string too_far = "the data would end beyond the longest file, 2^62 bytes";
  EXPECT_EQ(view_of({layout::limit - 3, 4, 4, 1}).error().text, too_far);
  EXPECT_EQ(view_of({0, 1, std::int64_t{1} << 61, 3}).error().text, too_far);
  EXPECT_EQ(view_of({0, 1, std::int64_t{1} << 40, std::int64_t{1} << 40}).error().text, too_far);
}

TEST(FileAccess, TakesPatternsWithoutDataAndWithOneBlockWithoutAStride) {
  EXPECT_TRUE(view_of({0, 0, 0, 5}));
  EXPECT_TRUE(view_of({0, 5, 0, 0}));
  EXPECT_TRUE(view_of({0, 5, 0, 1}).value().contiguous());
  EXPECT_TRUE(view_of({7, 5, 5, 9}).value().contiguous());
  EXPECT_EQ(chunks({0, 0, 0, 5}, 3).size(), 0U);
}

TEST(FileAccess, DealsStripesOutInTurn) {
  const auto all = chunks({stripe - 10, 2 * stripe, 0, 1}, 3);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].server, 0U);
  EXPECT_EQ(all[0].data, (layout::Extent{0, 10}));
  EXPECT_EQ(all[1].server, 1U);
  EXPECT_EQ(all[1].data, (layout::Extent{10, 10 + stripe}));
  EXPECT_EQ(all[2].server, 2U);
  EXPECT_EQ(all[2].data, (layout::Extent{10 + stripe, 2 * stripe}));
}

TEST(FileAccess, GivesOneServerFewChunksHoweverFarApartTheBlocksLie) {
  EXPECT_EQ(chunks({0, 8, 10 * stripe, 1000}, 1).size(), 1U);
  EXPECT_EQ(chunks({0, 8, 10 * stripe, 1000}, 2).size(), 1000U);
}

TEST(FileAccess, AnyPatternIsDealtOutWholeAndByStripes) {
  std::uint64_t state = 7;
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(splitmix(state += splitmix_step) % static_cast<std::uint64_t>(most + 1));
  };
  for (int round = 0; round < 500; ++round) {
    Pattern pattern;
    pattern.offset = draw(3 * stripe);
    pattern.block = 1 + draw(1LL << draw(21));
    pattern.stride = pattern.block + draw(1LL << draw(22));
    pattern.count = 1 + draw(20);
    const auto servers = static_cast<std::size_t>(1 + draw(4));
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << pattern.offset << " " << pattern.block << " "
                                    << pattern.stride << " " << pattern.count << " on " << servers);
    std::int64_t at = 0;
    for (const io_client::Chunk& chunk : chunks(pattern, servers)) {
      ASSERT_EQ(chunk.data.first, at);
      ASSERT_GT(chunk.data.end, at);
      ASSERT_LE(chunk.data.count(), stripe);
      at = chunk.data.end;
      if (servers == 1) continue;
      ASSERT_EQ(chunk.server, static_cast<std::size_t>(offset_in(pattern, chunk.data.first) / stripe) % servers);
      ASSERT_EQ(offset_in(pattern, chunk.data.first) / stripe, offset_in(pattern, chunk.data.end - 1) / stripe);
    }
    ASSERT_EQ(at, pattern.bytes());
  }
}

}  // namespace
}  // namespace hocket::api
