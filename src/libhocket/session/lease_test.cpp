#include "session/lease.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <map>

#include "base/clock.hpp"

namespace hocket::runtime {
namespace {

// Counts the renewals of each request.
struct Renewals {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, int> count;

  void add(RequestId request) {
    const std::lock_guard lock(mutex);
    ++count[request.value];
    changed.notify_all();
  }
  bool wait_for(std::uint64_t request, int times) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds{20}, [&] { return count[request] >= times; });
  }
  int of(std::uint64_t request) {
    const std::lock_guard lock(mutex);
    return count[request];
  }
};

TEST(LeaseKeeper, RenewsInEachThirdOfTheLeaseUntilItIsReleased) {
  Renewals renewals;
  LeaseKeeper keeper({[&](RequestId request) { renewals.add(request); }});
  const Time start = node_now();
  keeper.hold(RequestId{1}, from_s(0.15));
  ASSERT_TRUE(renewals.wait_for(1, 3));
  EXPECT_GE(node_now() - start, from_s(0.149)) << "three times in a lease, not more";
  keeper.release(RequestId{1});
  const int before = renewals.of(1);
  keeper.hold(RequestId{2}, from_s(0.03));
  ASSERT_TRUE(renewals.wait_for(2, 3));
  EXPECT_EQ(renewals.of(1), before);
}

TEST(LeaseKeeper, RenewsSeveralAtOnce) {
  Renewals renewals;
  LeaseKeeper keeper({[&](RequestId request) { renewals.add(request); }});
  keeper.hold(RequestId{1}, from_s(0.03));
  keeper.hold(RequestId{2}, from_s(0.03));
  EXPECT_TRUE(renewals.wait_for(1, 2));
  EXPECT_TRUE(renewals.wait_for(2, 2));
}

TEST(LeaseKeeper, RunsNoSignalHandlerInItsThread) {
  Renewals renewals;
  std::atomic<bool> blocked = false;
  LeaseKeeper keeper({[&](RequestId request) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGTERM) == 1;
    renewals.add(request);
  }});
  keeper.hold(RequestId{1}, from_s(0.03));
  ASSERT_TRUE(renewals.wait_for(1, 1));
  EXPECT_TRUE(blocked);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 0) << "of the application's threads nothing is blocked";
}

TEST(LeaseKeeper, RenewsNothingAfterStop) {
  Renewals renewals;
  LeaseKeeper keeper({[&](RequestId request) { renewals.add(request); }});
  keeper.hold(RequestId{1}, from_s(0.03));
  ASSERT_TRUE(renewals.wait_for(1, 1));
  keeper.stop();
  const int before = renewals.of(1);
  keeper.hold(RequestId{2}, from_s(0.015));
  std::this_thread::sleep_for(std::chrono::milliseconds{40});  // no event shows that nothing happens
  EXPECT_EQ(renewals.of(1), before);
  EXPECT_EQ(renewals.of(2), 0);
}

}  // namespace
}  // namespace hocket::runtime
