#include "model/progress.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hocket::model {
namespace {

TEST(Progress, OneAloneGetsOnAsTimePasses) {
  Progress progress;
  progress.advance(5, 2);
  Progress::UserToken user = progress.enter({}, 1);
  progress.advance(3, 2);
  EXPECT_EQ(progress.seen(user).served_s, 3);
  EXPECT_EQ(progress.seen(user).shared_s, 0);
  EXPECT_EQ(progress.take(user).served_s, 3);
  EXPECT_EQ(progress.take(user).served_s, 0) << "taken once";
  progress.leave(user);
  EXPECT_FALSE(user.active());
  EXPECT_EQ(progress.take(user).served_s, 0);
}

TEST(Progress, EachHasItsOwnPaceOrTheTargets) {
  Progress progress;
  const Progress::UserToken own = progress.enter({1.5, 0}, 1);
  const Progress::UserToken of_target = progress.enter({}, 1);
  progress.advance(6, 2);
  EXPECT_DOUBLE_EQ(progress.seen(own).served_s, 4);
  EXPECT_DOUBLE_EQ(progress.seen(of_target).served_s, 3);
  progress.advance(6, 3);  // learned in the meantime
  EXPECT_DOUBLE_EQ(progress.seen(of_target).served_s, 5);
  EXPECT_DOUBLE_EQ(progress.seen(own).excess_s, 12);
}

TEST(Progress, OnlyThoseWhosePartsMeetAreSlower) {
  Progress progress;
  const Progress::UserToken one = progress.enter({}, 1, PartSet::of({1}));
  const Progress::UserToken two = progress.enter({}, 1, PartSet::of({2}));
  progress.advance(6, 2);
  EXPECT_EQ(progress.seen(one).served_s, 6);
  EXPECT_EQ(progress.seen(one).shared_s, 0);
  Progress::UserToken both = progress.enter({}, 1, PartSet::of({1, 2}));
  progress.advance(6, 2);
  EXPECT_DOUBLE_EQ(progress.seen(one).served_s, 9);
  EXPECT_DOUBLE_EQ(progress.seen(two).others_s, 6);
  EXPECT_DOUBLE_EQ(progress.seen(both).served_s, 2) << "beside two";
  progress.leave(both);
  const Progress::UserToken whole = progress.enter({}, 1);
  progress.advance(6, 2);
  EXPECT_DOUBLE_EQ(progress.seen(one).served_s, 12);
  EXPECT_DOUBLE_EQ(progress.seen(whole).served_s, 2) << "the whole target meets all parts";
}

TEST(Progress, NobodyIsSlowerBeforeTheTargetIsFull) {
  Progress progress;
  const Progress::UserToken half = progress.enter({}, 0.5);
  const Progress::UserToken less = progress.enter({3, 0}, 0.4);
  progress.advance(6, 2);
  EXPECT_DOUBLE_EQ(progress.seen(half).served_s, 6);
  EXPECT_DOUBLE_EQ(progress.seen(less).served_s, 6);
  EXPECT_DOUBLE_EQ(progress.seen(half).shared_s, 6);
  EXPECT_DOUBLE_EQ(progress.seen(half).excess_s, 0);
  progress.enter({}, 0.6);
  progress.advance(6, 2);
  EXPECT_DOUBLE_EQ(progress.seen(half).served_s, 10) << "1.5 times as slow";
  EXPECT_DOUBLE_EQ(progress.seen(less).served_s, 9) << "twice";
  EXPECT_DOUBLE_EQ(progress.seen(half).excess_s, 3);
}

// Users come and go; each must get what a loop over all of them would give it.
TEST(Progress, IsThatOfALoopOverAll) {
  std::mt19937_64 random{11};
  struct One {
    Progress::UserToken user;
    Slowness slowness;
    double demanded;
    Progress::ServiceSums done;
  };
  Progress progress;
  std::vector<One> users;
  double demanded = 0;
  for (int step = 0; step < 5000; ++step) {
    const double passed_s = static_cast<double>(random() % 100) / 10;
    const double of_target = 1 + static_cast<double>(step / 1000) / 4;
    progress.advance(passed_s, of_target);
    const double excess = std::max(0.0, demanded - 1);
    const double others = static_cast<double>(users.size()) - 1;
    for (One& one : users) {
      const double interference = one.slowness.interference > 0 ? one.slowness.interference : of_target;
      one.done.served_s += passed_s / (1 + (interference - 1) * excess + one.slowness.disturbance * others);
      if (users.size() == 1) continue;
      one.done.shared_s += passed_s;
      one.done.others_s += passed_s * others;
      one.done.excess_s += passed_s * excess;
    }
    const std::size_t at = users.empty() ? 0 : random() % users.size();
    if (random() % 8 >= (users.size() > 20 ? 2U : 5U) && !users.empty()) {
      One& one = users[at];
      const Progress::ServiceSums done = progress.take(one.user);
      EXPECT_NEAR(done.served_s, one.done.served_s, 1e-9);
      EXPECT_NEAR(done.shared_s, one.done.shared_s, 1e-9);
      EXPECT_NEAR(done.others_s, one.done.others_s, 1e-8);
      EXPECT_NEAR(done.excess_s, one.done.excess_s, 1e-8);
      one.done = {};
      if (random() % 4 == 0) continue;  // it stays
      progress.leave(one.user);
      demanded -= one.demanded;
      users.erase(users.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const double interference = random() % 2 == 0 ? 0 : 1 + static_cast<double>(random() % 4) / 4;
      const double its = 0.1 + static_cast<double>(random() % 10) / 10;
      const Slowness slowness{interference, static_cast<double>(random() % 3) / 2};
      users.push_back({progress.enter(slowness, its), slowness, its, {}});
      demanded += its;
    }
  }
}

}  // namespace
}  // namespace hocket::model
