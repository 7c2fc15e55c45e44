#include "model/progress.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hocket::model {
namespace {

TEST(Progress, OneAloneGetsOnAsTimePasses) {
  Progress progress;
  progress.advance(5, 2);
  Progress::User user = progress.enter(0);
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
  const Progress::User own = progress.enter(1.5);
  const Progress::User of_target = progress.enter(0);
  progress.advance(6, 2);
  EXPECT_DOUBLE_EQ(progress.seen(own).served_s, 4);
  EXPECT_DOUBLE_EQ(progress.seen(of_target).served_s, 3);
  progress.advance(6, 3);  // learnt meanwhile
  EXPECT_DOUBLE_EQ(progress.seen(of_target).served_s, 5);
  EXPECT_DOUBLE_EQ(progress.seen(own).shared_count, 24);
}

// Users come and go; each has what a loop over all of them would have given it.
TEST(Progress, IsThatOfALoopOverAll) {
  std::mt19937_64 random{11};
  struct One {
    Progress::User user;
    double interference;
    Progress::Sums done;
  };
  Progress progress;
  std::vector<One> users;
  for (int step = 0; step < 5000; ++step) {
    const double passed_s = static_cast<double>(random() % 100) / 10;
    const double of_target = 1 + static_cast<double>(step / 1000) / 4;
    progress.advance(passed_s, of_target);
    const auto count = static_cast<double>(users.size());
    for (One& one : users) {
      const double interference = one.interference > 0 ? one.interference : of_target;
      one.done.served_s += passed_s / (1 + (interference - 1) * (count - 1));
      if (count == 1) continue;
      one.done.shared_s += passed_s;
      one.done.shared_count += passed_s * count;
    }
    const std::size_t at = users.empty() ? 0 : random() % users.size();
    if (random() % 8 >= (users.size() > 20 ? 2U : 5U) && !users.empty()) {
      One& one = users[at];
      const Progress::Sums done = progress.take(one.user);
      EXPECT_NEAR(done.served_s, one.done.served_s, 1e-9);
      EXPECT_NEAR(done.shared_s, one.done.shared_s, 1e-9);
      EXPECT_NEAR(done.shared_count, one.done.shared_count, 1e-8);
      one.done = {};
      if (random() % 4 == 0) continue;  // it stays
      progress.leave(one.user);
      users.erase(users.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const double interference = random() % 2 == 0 ? 0 : 1 + static_cast<double>(random() % 4) / 4;
      users.push_back({progress.enter(interference), interference, {}});
    }
  }
}

}  // namespace
}  // namespace hocket::model
