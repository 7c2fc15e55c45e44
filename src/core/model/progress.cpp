#include "model/progress.hpp"

#include <algorithm>

namespace hocket::model {

namespace {

// Returns the first element that satisfies the condition, else a new one at the end.
template <class T, class Condition>
T* find_or_add(ShortVector<T>& list, Condition condition) {
  T* const found = std::find_if(list.begin(), list.end(), condition);
  if (found != list.end()) return found;
  list.push_back({});
  return list.end() - 1;
}

}  // namespace

// Returns the number of the group of these parts. Its sums begin anew if it has no users.
std::size_t Progress::group_of(const PartSet& parts) {
  const auto same = [&](const PartsGroup& one) { return one.users > 0 && one.parts == parts; };
  PartsGroup* group = std::find_if(groups_.begin(), groups_.end(), same);
  if (group == groups_.end()) {
    group = find_or_add(groups_, [](const PartsGroup& one) { return one.users == 0; });
    *group = {parts};
  }
  return static_cast<std::size_t>(group - groups_.begin());
}

Progress::UserToken Progress::enter(const Slowness& slowness, double demanded, const PartSet& parts) {
  const std::size_t group = group_of(parts);
  const auto same = [&](const SlownessGroup& pace) {
    return pace.users > 0 && pace.group == group && pace.slowness == slowness;
  };
  SlownessGroup* pace = std::find_if(paces_.begin(), paces_.end(), same);
  if (pace == paces_.end()) {
    pace = find_or_add(paces_, [](const SlownessGroup& one) { return one.users == 0; });
    *pace = {slowness, group, 0, 0};
  }
  ++pace->users;
  ++users_;
  ++groups_[group].users;
  groups_[group].demanded += demanded;
  UserToken user;
  user.demanded_ = demanded;
  user.pace_ = static_cast<std::size_t>(pace - paces_.begin());
  user.taken_ = all(user);
  return user;
}

void Progress::leave(UserToken& user) {
  if (!user.active()) return;
  SlownessGroup& pace = paces_[user.pace_];
  --pace.users;
  --groups_[pace.group].users;
  groups_[pace.group].demanded -= user.demanded_;
  user = {};
  if (--users_ == 0) *this = {};  // sums that grow without limit lose their last digits
}

// Returns the use of a group's parts by all users that it meets, its own included.
TargetUse Progress::use_beside(const PartsGroup& group) const {
  TargetUse use{};
  for (const PartsGroup& other : groups_) {
    if (other.users == 0 || !other.parts.meets(group.parts)) continue;
    use.users += static_cast<double>(other.users);
    use.demanded += other.demanded;
  }
  return use;
}

void Progress::advance(double passed_s, double of_target) {
  if (!(passed_s > 0) || users_ == 0) return;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    PartsGroup& one = groups_[group];
    if (one.users == 0) continue;
    const TargetUse use = use_beside(one);
    for (SlownessGroup& pace : paces_) {
      if (pace.group != group) continue;
      Slowness slowness = pace.slowness;
      if (!(slowness.interference > 0)) slowness.interference = of_target;
      pace.served_s += passed_s / slowdown(slowness, use);
    }
    // A single user has no others, so the sums about others stay as they are.
    if (use.others() < 1) continue;
    one.shared_s += passed_s;
    one.others_s += passed_s * use.others();
    one.excess_s += passed_s * use.excess();
  }
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
