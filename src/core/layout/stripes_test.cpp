#include "layout/stripes.hpp"

#include <gtest/gtest.h>

#include <map>

#include "layout/model_testing.hpp"

namespace hocket::layout {
namespace {

using testing::draw;

TEST(Stripes, BelongToTheServersInTurn) {
  EXPECT_EQ(server_of(0, 3), 0U);
  EXPECT_EQ(server_of(stripe_bytes - 1, 3), 0U);
  EXPECT_EQ(server_of(stripe_bytes, 3), 1U);
  EXPECT_EQ(server_of(5 * stripe_bytes, 3), 2U);
  EXPECT_EQ(server_of(5 * stripe_bytes, 1), 0U);
}

// The servers' shares of the bytes before any end add up to it, and each is what the definition of a stripe says.
TEST(StripesProperties, ServersHaveTheBytesOfTheirStripes) {
  testing::Random random(7);
  for (int i = 0; i < 500; ++i) {
    const std::int64_t servers = draw(random, 1, 9), end = draw(random, 0, 40 * stripe_bytes);
    std::vector<std::int64_t> shares(static_cast<std::size_t>(servers));
    for (std::int64_t at = 0; at < end; at += stripe_bytes)
      shares[server_of(at, shares.size())] += std::min(stripe_bytes, end - at);
    for (std::size_t k = 0; k < shares.size(); ++k)
      EXPECT_EQ(bytes_of_server(end, k, shares.size()), shares[k]) << end << " of server " << k << " of " << servers;
    const std::int64_t first = draw(random, 0, 20 * stripe_bytes), last = first + draw(random, 0, 2 * stripe_bytes);
    for (std::size_t k = 0; k < shares.size(); ++k) {
      bool all = true;
      for (std::int64_t at = first; at <= last; at = std::min(at + stripe_bytes, at < last ? last : last + 1))
        all &= server_of(at, shares.size()) == k;
      const bool in_one_stripe = servers == 1 || first / stripe_bytes == last / stripe_bytes;
      EXPECT_EQ(is_of_server({first, last + 1}, k, shares.size()), all && in_one_stripe);
    }
  }
}

TEST(Stripes, GiveAllServersWorkAtATime) {
  const FileView view;  // one contiguous run
  constexpr std::int64_t half = stripe_bytes / 2;
  StripeChunks chunks{view, {half, 5 * stripe_bytes}, 2, half};
  const auto expect = [&](std::size_t server, std::int64_t first, std::int64_t round) {
    EXPECT_EQ(chunks.next(), (StripeChunk{server, {first, first + half}, round}));
  };
  expect(1, stripe_bytes, 0);
  expect(0, half, 1);
  expect(1, stripe_bytes + half, 1);
  expect(0, 2 * stripe_bytes, 2);
  expect(1, 3 * stripe_bytes, 2);
  expect(0, 2 * stripe_bytes + half, 3);
  expect(1, 3 * stripe_bytes + half, 3);
  expect(0, 4 * stripe_bytes, 4);
  expect(0, 4 * stripe_bytes + half, 5);
  EXPECT_EQ(chunks.next(), std::nullopt);
}

TEST(Stripes, MayHaveRoundsWhereAServerHasSeveralWindows) {
  EXPECT_FALSE(StripeChunks::may_have_rounds({limit, 0}, 2, 4096));
  EXPECT_FALSE(StripeChunks::may_have_rounds({0, 2 * stripe_bytes}, 2, stripe_bytes));
  EXPECT_TRUE(StripeChunks::may_have_rounds({0, 2 * stripe_bytes + 1}, 2, stripe_bytes));
  EXPECT_TRUE(StripeChunks::may_have_rounds({4095, 4097}, 2, 4096));
  EXPECT_FALSE(StripeChunks::may_have_rounds({4096, 8192}, 2, 4096));
}

// Each byte of any access goes to the server that the definition says, whatever the view, the window, and the range.
TEST(StripesProperties, AByteHasOneServerInEveryAccess) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    testing::Types types(seed, true);
    testing::Random& random = types.random();
    const testing::Both type = types.next();
    // The tile is spread over some stripes.
    const std::int64_t spread = draw(random, 0, 2) == 0 ? 0 : draw(random, 1, 3 * stripe_bytes);
    const auto wide = resized(type.layout.lower_bound(), type.layout.extent() + spread, type.layout);
    ASSERT_TRUE(wide.ok());
    const auto made = FileView::make(draw(random, 0, 3 * stripe_bytes), wide.value());
    if (!made || made.value().bytes() == 0) continue;
    const FileView& view = made.value();
    const std::int64_t first = draw(random, 0, 40);
    const Extent data{first, first + draw(random, 0, 3000)};
    if (!view.contains(data)) continue;
    const auto servers = static_cast<std::size_t>(draw(random, 1, 5));
    const std::int64_t window = std::int64_t{1} << draw(random, 6, 22);
    std::map<std::int64_t, std::int64_t> dealt;  // data: first to end
    std::pair<std::int64_t, std::size_t> before{-1, 0};
    StripeChunks chunks{view, data, servers, window};
    while (const auto chunk = chunks.next()) {
      EXPECT_LT(before, std::make_pair(chunk->round, chunk->server)) << "seed " << seed;
      before = {chunk->round, chunk->server};
      ASSERT_GT(chunk->data.count(), 0);
      EXPECT_TRUE(dealt.emplace(chunk->data.first, chunk->data.end).second);
      const Extent span = view.span(chunk->data);
      EXPECT_LE(span.count(), window);
      for (std::int64_t byte = chunk->data.first; byte < chunk->data.end; ++byte)
        ASSERT_EQ(server_of(view.offset(byte), servers), chunk->server) << "seed " << seed << ", byte " << byte;
    }
    std::int64_t end = data.first;
    for (const auto& [from, to] : dealt) {
      EXPECT_EQ(from, end) << "seed " << seed;
      end = to;
    }
    EXPECT_EQ(end, data.end) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hocket::layout
