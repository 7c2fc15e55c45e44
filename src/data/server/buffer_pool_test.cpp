#include "server/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace hocket::server {
namespace {

TEST(BufferPool, GivesSoMuchAndNoMore) {
  BufferPool pool{1 << 20};
  Buffer large = pool.take(1 << 19);
  Buffer other = pool.take((1 << 18) + 1);  // takes a block of twice the size
  ASSERT_TRUE(large);
  ASSERT_TRUE(other);
  EXPECT_EQ(other.bytes().size(), (1U << 18U) + 1);
  EXPECT_FALSE(pool.take(1));
  large = Buffer{};
  EXPECT_EQ(pool.in_use(), 1 << 19);
  EXPECT_TRUE(pool.take(1));
}

TEST(BufferPool, MemoryOfOneSizeBecomesThatOfAnother) {
  BufferPool pool{1 << 20};
  for (int round = 0; round < 3; ++round) {
    std::vector<Buffer> small;
    while (Buffer buffer = pool.take(4096)) small.push_back(std::move(buffer));
    EXPECT_EQ(small.size(), 256U);
    small.clear();
    Buffer large = pool.take(1 << 20);
    ASSERT_TRUE(large);
    std::memset(large.bytes().data(), round, large.bytes().size());
  }
  EXPECT_EQ(pool.in_use(), 0);
}

TEST(BufferPool, ReservationsLeaveDataThreeQuarters) {
  BufferPool pool{4 << 20};
  Reservation most = pool.reserve(1 << 20);
  ASSERT_TRUE(most);
  EXPECT_FALSE(pool.reserve(1));
  std::vector<Buffer> held;
  while (Buffer buffer = pool.take(1 << 20)) held.push_back(std::move(buffer));
  EXPECT_EQ(held.size(), 3U);
  most = Reservation{};
  EXPECT_TRUE(pool.reserve(1 << 20)) << "it is given back at once";
  Reservation half = pool.reserve(1 << 19);
  EXPECT_FALSE(pool.take(1 << 20));
  half = pool.reserve(1 << 19);  // the old one goes when the new one is there
  EXPECT_TRUE(half);
}

TEST(BufferPool, NeverHoldsMoreThanItsLimit) {
  std::mt19937_64 random{9};
  BufferPool pool{3 << 20};
  std::vector<Buffer> held;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && !held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
    } else if (Buffer buffer = pool.take(1 + static_cast<std::int64_t>(random() % (1 << 20)))) {
      held.push_back(std::move(buffer));
    }
    ASSERT_LE(pool.in_use(), pool.limit());
  }
  held.clear();
  EXPECT_EQ(pool.in_use(), 0);
}

}  // namespace
}  // namespace hocket::server
