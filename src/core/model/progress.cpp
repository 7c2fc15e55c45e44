#include "model/progress.hpp"

#include <algorithm>

namespace hocket::model {

Progress::UserToken Progress::enter(const Slowness& slowness, double demanded) {
  const auto same = [&](const SlownessGroup& pace) { return pace.users > 0 && pace.slowness == slowness; };
  auto* pace = std::find_if(paces_.begin(), paces_.end(), same);
  if (pace == paces_.end()) {
    pace = std::find_if(paces_.begin(), paces_.end(), [](const SlownessGroup& one) { return one.users == 0; });
    if (pace == paces_.end()) {
      paces_.push_back({});
      pace = paces_.end() - 1;
    }
    *pace = {slowness, 0, 0};
  }
  ++pace->users;
  ++users_;
  demanded_ += demanded;
  UserToken user;
  user.demanded_ = demanded;
  user.pace_ = static_cast<std::size_t>(pace - paces_.begin());
  user.taken_ = all(user);
  return user;
}

void Progress::leave(UserToken& user) {
  if (!user.active()) return;
  --paces_[user.pace_].users;
  demanded_ -= user.demanded_;
  user = {};
  if (--users_ == 0) *this = {};  // sums that grow without limit lose their last digits
}

void Progress::advance(double passed_s, double of_target) {
  if (!(passed_s > 0) || users_ == 0) return;
  const TargetUse use{static_cast<double>(users_), demanded_};
  for (SlownessGroup& pace : paces_) {
    Slowness slowness = pace.slowness;
    if (!(slowness.interference > 0)) slowness.interference = of_target;
    pace.served_s += passed_s / slowdown(slowness, use);
  }
  // A single user has no others, so the sums about others stay as they are.
  if (users_ == 1) return;
  shared_s_ += passed_s;
  others_s_ += passed_s * use.others();
  excess_s_ += passed_s * use.excess();
}

Progress::ServiceSums Progress::seen(const UserToken& user) const {
  if (!user.active()) return {};
  const ServiceSums sums = all(user);
  return {sums.served_s - user.taken_.served_s, sums.shared_s - user.taken_.shared_s,
          sums.others_s - user.taken_.others_s, sums.excess_s - user.taken_.excess_s};
}

Progress::ServiceSums Progress::take(UserToken& user) const {
  const ServiceSums done = seen(user);
  if (user.active()) user.taken_ = all(user);
  return done;
}

}  // namespace hocket::model
