#include "model/progress.hpp"

#include <algorithm>

namespace hocket::model {

Progress::User Progress::enter(double interference) {
  const auto same = [&](const Pace& pace) { return pace.users > 0 && pace.interference == interference; };
  auto pace = std::find_if(paces_.begin(), paces_.end(), same);
  if (pace == paces_.end()) {
    pace = std::find_if(paces_.begin(), paces_.end(), [](const Pace& one) { return one.users == 0; });
    if (pace == paces_.end()) pace = paces_.emplace(pace);
    *pace = {interference, 0, 0};
  }
  ++pace->users;
  ++users_;
  User user;
  user.pace_ = static_cast<std::size_t>(pace - paces_.begin());
  user.taken_ = all(user);
  return user;
}

void Progress::leave(User& user) {
  if (!user.active()) return;
  --paces_[user.pace_].users;
  user = {};
  if (--users_ == 0) *this = {};  // sums that grow for ever lose their last digits
}

void Progress::advance(double passed_s, double of_target) {
  if (!(passed_s > 0) || users_ == 0) return;
  const auto count = static_cast<double>(users_);
  for (Pace& pace : paces_)
    pace.served_s += passed_s / slowdown(pace.interference > 0 ? pace.interference : of_target, count - 1);
  if (users_ == 1) return;
  shared_s_ += passed_s;
  shared_count_ += passed_s * count;
}

Progress::Sums Progress::seen(const User& user) const {
  if (!user.active()) return {};
  const Sums sums = all(user);
  return {sums.served_s - user.taken_.served_s, sums.shared_s - user.taken_.shared_s,
          sums.shared_count - user.taken_.shared_count};
}

Progress::Sums Progress::take(User& user) const {
  const Sums done = seen(user);
  if (user.active()) user.taken_ = all(user);
  return done;
}

}  // namespace hocket::model
