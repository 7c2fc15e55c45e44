#include "server/holding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "server/times_testing.hpp"

namespace hocket::server {
namespace {

using std::chrono::milliseconds;
using testing::at;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Holding::OperationKey key{1, 5};

// Returns data with holes, far from all others.
Holding::RequestExtent piece(Holding::SessionNumber session, std::uint64_t ticket) {
  const auto first = static_cast<std::int64_t>(ticket) * 1000;
  return {session, ticket, first, first + 10, 4};
}

TEST(Holding, AllEndsReleaseAnOperationOnce) {
  Holding holding{{}};
  EXPECT_THAT(holding.hold(key, piece(1, 10), at(0)), IsEmpty());
  EXPECT_THAT(holding.hold(key, piece(2, 11), at(0)), IsEmpty());
  EXPECT_THAT(holding.end(key, 1, 2, at(0)), IsEmpty());
  EXPECT_THAT(holding.end(key, 1, 2, at(0)), IsEmpty());  // a repeated end counts once
  EXPECT_THAT(holding.end(key, 2, 2, at(0)), ElementsAre(10, 11));
  EXPECT_TRUE(holding.empty());
  EXPECT_EQ(holding.next_expiry(), std::nullopt);
}

TEST(Holding, WhoIsGoneHasEnded) {
  Holding holding{{}};
  holding.hold(key, piece(1, 10), at(0));
  holding.hold(key, piece(2, 11), at(0));
  holding.end(key, 1, 2, at(0));
  EXPECT_THAT(holding.gone(3), IsEmpty());
  EXPECT_THAT(holding.gone(2), ElementsAre(10, 11));
}

TEST(Holding, NobodyWaitsForWhatDoesNotCome) {
  Holding holding{{.idle = milliseconds{10}}};
  holding.hold(key, piece(1, 10), at(0));
  holding.hold({1, 6}, piece(1, 11), at(4));
  EXPECT_EQ(holding.next_expiry(), at(10));
  EXPECT_THAT(holding.expire(at(9)), IsEmpty());
  EXPECT_THAT(holding.expire(at(10)), ElementsAre(10));
  EXPECT_THAT(holding.expire(at(14)), ElementsAre(11));
  holding.expire(at(100));
  EXPECT_EQ(holding.next_expiry(), std::nullopt);  // operations are forgotten
}

TEST(Holding, WhoWaitsForWhatIsHeldIsNotWaitedFor) {
  Holding holding{{}};
  holding.end(key, 1, 2, at(0));
  holding.end(key, 2, 2, at(0));  // operations of this file have two participants
  const Holding::OperationKey next{key.file, key.operation + 1};
  holding.hold(next, piece(1, 10), at(0));
  EXPECT_THAT(holding.expire(at(0)), IsEmpty());
  holding.hold(next, piece(2, 11), at(0));
  EXPECT_THAT(holding.expire(at(0)), ElementsAre(10, 11));
  holding.hold(next, piece(1, 12), at(0));
  EXPECT_THAT(holding.expire(at(0)), IsEmpty());
  holding.end(next, 2, 2, at(0));
  EXPECT_THAT(holding.expire(at(0)), ElementsAre(12));
}

TEST(Holding, AnOperationHoldsSoManyBytesAndNoMore) {
  Holding holding{{.most_bytes = 8}};
  EXPECT_THAT(holding.hold(key, piece(1, 10), at(0)), IsEmpty());
  EXPECT_THAT(holding.hold(key, piece(1, 11), at(0)), ElementsAre(10, 11));
  EXPECT_TRUE(holding.empty());
}

TEST(Holding, WhatIsInterleavedIsReleasedWhenItIsFull) {
  Holding holding{{.enough_bytes = 100}};
  // Each of three clients has every third block of 0 … 119 and of 120 … 239.
  EXPECT_THAT(holding.hold(key, {1, 1, 0, 100, 40}, at(0)), IsEmpty());
  EXPECT_THAT(holding.hold(key, {1, 2, 120, 220, 40}, at(0)), IsEmpty());
  EXPECT_THAT(holding.hold(key, {3, 3, 20, 120, 40}, at(0)), IsEmpty());
  EXPECT_THAT(holding.hold(key, {3, 4, 140, 240, 40}, at(0)), IsEmpty());
  EXPECT_THAT(holding.hold(key, {2, 5, 10, 110, 40}, at(0)), ElementsAre(1, 3, 5));
  EXPECT_THAT(holding.hold(key, {2, 6, 130, 230, 40}, at(0)), ElementsAre(2, 4, 6));
}

TEST(Holding, NeighboursAreReleasedWhenTheyAreLongEnough) {
  Holding holding{{.enough_bytes = 100}};
  EXPECT_THAT(holding.hold(key, {1, 1, 0, 40, 40}, at(0)), IsEmpty());
  EXPECT_THAT(holding.hold(key, {1, 2, 80, 120, 40}, at(0)), IsEmpty());
  EXPECT_THAT(holding.hold(key, {1, 3, 40, 80, 40}, at(0)), ElementsAre(1, 2, 3));
  EXPECT_THAT(holding.hold(key, {1, 4, 500, 600, 100}, at(0)), ElementsAre(4));
}

TEST(Holding, AFileIsReleasedButForOneOperation) {
  Holding holding{{}};
  holding.hold({1, 5}, piece(1, 10), at(0));
  holding.hold({2, 5}, piece(1, 11), at(0));
  holding.hold({1, 4}, piece(1, 12), at(0));
  EXPECT_THAT(holding.release_file(1, 5), ElementsAre(12));
  EXPECT_THAT(holding.release_file(1, 0), ElementsAre(10));
  EXPECT_THAT(holding.release_all(), ElementsAre(11));
}

// Checks at random that each ticket is released once, within a bounded time, in the order of its call, and that
// memory is bounded.
TEST(Holding, EveryTicketComesOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random{seed};
    Holding holding{{.idle = milliseconds{5}, .most_bytes = 60, .enough_bytes = 20}};
    std::vector<std::uint64_t> released;
    const auto take = [&](const Holding::Tickets& tickets) {
      EXPECT_TRUE(std::is_sorted(tickets.begin(), tickets.end()));
      released.insert(released.end(), tickets.begin(), tickets.end());
    };
    std::uint64_t ticket = 0;
    for (std::int64_t now = 0; now < 300; ++now) {
      const Holding::OperationKey some{random() % 2, 1 + random() % 3};
      const std::uint64_t session = random() % 4;
      const auto first = static_cast<std::int64_t>(random() % 60);
      const auto span = static_cast<std::int64_t>(1 + random() % 12);
      switch (random() % 8) {
        case 0: take(holding.end(some, session, 4, at(now))); break;
        case 1: take(holding.gone(session)); break;
        case 2: take(holding.release_file(some.file, random() % 4)); break;
        case 3: take(holding.expire(at(now))); break;
        default: take(holding.hold(some, {session, ++ticket, first, first + span, 1 + span / 2}, at(now)));
      }
    }
    take(holding.expire(at(305)));
    EXPECT_TRUE(holding.empty());
    std::sort(released.begin(), released.end());
    ASSERT_EQ(released.size(), ticket) << seed;
    for (std::uint64_t i = 0; i < ticket; ++i) ASSERT_EQ(released[i], i + 1) << seed;
  }
}

}  // namespace
}  // namespace hocket::server
