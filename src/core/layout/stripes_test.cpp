#include "layout/stripes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <tuple>

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

std::vector<std::size_t> dealt(const Striping& striping, std::int64_t stripes) {
  std::vector<std::size_t> servers;
  for (std::int64_t i = 0; i < stripes; ++i) servers.push_back(striping.server_of_stripe(i));
  return servers;
}

Striping weighed(const std::vector<int>& weights) { return Striping{std::span<const int>{weights}}; }

TEST(Stripes, GoToServersByTheirWeights) {
  using Servers = std::vector<std::size_t>;
  EXPECT_EQ(dealt(weighed({8, 8, 8}), 7), (Servers{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(dealt(weighed({8, 4}), 6), (Servers{0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(dealt(weighed({1, 2, 1}), 8), (Servers{1, 0, 2, 1, 1, 0, 2, 1}));
  EXPECT_EQ(dealt(weighed({5, 1}), 6), (Servers{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(dealt(weighed({3}), 3), (Servers{0, 0, 0}));
}

// The model knows only what a pattern must fulfil: each server has its share of each period. In any beginning of the
// file, it is less than one and a half stripes ahead of its share or behind.
TEST(StripesProperties, EachServerHasItsShareOfEveryBeginning) {
  testing::Random random(11);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int> weights(static_cast<std::size_t>(draw(random, 1, 9)));
    for (int& weight : weights) weight = static_cast<int>(draw(random, 1, 8));
    const Striping striping = weighed(weights);
    ASSERT_EQ(striping.servers(), weights.size());
    const int sum = std::accumulate(weights.begin(), weights.end(), 0);
    std::vector<std::int64_t> has(weights.size());
    for (std::int64_t stripe = 0; stripe < 3 * sum; ++stripe) {
      const std::size_t server = striping.server_of_stripe(stripe);
      ASSERT_LT(server, weights.size());
      EXPECT_EQ(striping.server_of_byte(stripe * stripe_bytes), server);
      EXPECT_EQ(striping.server_of_byte((stripe + 1) * stripe_bytes - 1), server);
      ++has[server];
      for (std::size_t k = 0; k < weights.size(); ++k) {
        const std::int64_t share = (stripe + 1) * weights[k];  // times the sum
        ASSERT_LT(2 * std::abs(has[k] * sum - share), 3 * std::int64_t{sum});
        if ((stripe + 1) % sum == 0) {
          ASSERT_EQ(has[k] * sum, share) << "of a whole period";
        }
      }
    }
    std::vector<int> twice = weights;
    for (int& weight : twice) weight *= 3;
    EXPECT_EQ(dealt(weighed(twice), 3 * sum), dealt(striping, 3 * sum)) << "only the ratios count";
  }
}

TEST(StripesProperties, EqualWeightsAreNone) {
  for (std::size_t servers = 1; servers < 70; ++servers) {
    const std::vector<int> weights(servers, 5);
    EXPECT_EQ(dealt(weighed(weights), 200), dealt(Striping{servers}, 200));
    for (std::int64_t at = 0; at < 200 * stripe_bytes; at += stripe_bytes / 2)
      ASSERT_EQ(weighed(weights).server_of_byte(at), server_of(at, servers));
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
    std::vector<int> weights(static_cast<std::size_t>(draw(random, 1, 5)));
    for (int& weight : weights) weight = draw(random, 0, 1) == 0 ? 8 : static_cast<int>(draw(random, 1, 8));
    const Striping striping = weighed(weights);
    const std::int64_t window = std::int64_t{1} << draw(random, 6, 22);
    std::map<std::int64_t, std::int64_t> dealt;  // data: first to end
    std::tuple<std::int64_t, std::size_t, std::int64_t> before{-1, 0, 0};
    StripeChunks chunks{view, data, striping, window};
    while (const auto chunk = chunks.next()) {
      const std::tuple now{chunk->round, chunk->server, chunk->data.first};
      EXPECT_LT(before, now) << "seed " << seed;
      before = now;
      ASSERT_GT(chunk->data.count(), 0);
      EXPECT_TRUE(dealt.emplace(chunk->data.first, chunk->data.end).second);
      const Extent span = view.span(chunk->data);
      EXPECT_LE(span.count(), window);
      for (std::int64_t byte = chunk->data.first; byte < chunk->data.end; ++byte)
        ASSERT_EQ(striping.server_of_byte(view.offset(byte)), chunk->server) << "seed " << seed << ", byte " << byte;
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
