#include "process/deputy.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "session/heartbeat.hpp"

namespace hocket::runtime {
namespace {

// The errand: a number to double. `memory` stands for the allocator's lock.
std::atomic<int> number = 0;
std::atomic<int> dropped = 0;
std::mutex memory;

void serve() {
  const std::lock_guard lock(memory);
  number = number * 2;
}
void drop() { ++dropped; }

TEST(Deputy, DoesTheErrandsOfManyThreads) {
  Deputy deputy{serve, drop};
  deputy.start();
  std::atomic<int> right = 0;
  const auto ask = [&](int mine) {
    for (int i = 0; i < 100; ++i) {
      while (!deputy.claim()) ASSERT_TRUE(deputy.await_turn());
      number = mine;
      ASSERT_TRUE(deputy.send());
      right += number == 2 * mine ? 1 : 0;
      deputy.release();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) threads.emplace_back(ask, i);
  for (std::thread& thread : threads) thread.join();
  deputy.stop();
  EXPECT_EQ(right, 400);
}

TEST(Deputy, IsGivenUpWhileItWaitsForTheCallersOwnLock) {
  Deputy deputy{serve, drop};
  deputy.start();
  dropped = 0;
  {
    const std::lock_guard interrupted(memory);
    ASSERT_TRUE(deputy.claim());
    EXPECT_FALSE(deputy.send());
    EXPECT_FALSE(deputy.claim()) << "it still has the errand";
  }
  EXPECT_TRUE(deputy.await_turn());
  EXPECT_EQ(dropped, 1);
  EXPECT_TRUE(deputy.claim());
  EXPECT_TRUE(deputy.send());
  deputy.release();
  deputy.stop();
}

TEST(Deputy, IsNotGivenUpWhileItShowsThatItLives) {
  static std::atomic<int> beats = 0;
  Deputy deputy{[] {
                  const Time until = node_now() + std::chrono::milliseconds{1500};
                  for (; node_now() < until; ++beats) {
                    std::this_thread::sleep_for(std::chrono::milliseconds{50});
                    beat();
                  }
                },
                drop};
  deputy.start();
  ASSERT_TRUE(deputy.claim());
  EXPECT_TRUE(deputy.send());
  deputy.release();
  deputy.stop();
  EXPECT_GT(beats, 0);
}

TEST(Deputy, ThatDoesNotRunRefuses) {
  Deputy deputy{serve, drop};
  EXPECT_FALSE(deputy.claim());
  EXPECT_FALSE(deputy.await_turn());
  deputy.start();
  deputy.stop();
  EXPECT_FALSE(deputy.claim());
  EXPECT_FALSE(deputy.await_turn());
}

}  // namespace
}  // namespace hocket::runtime
