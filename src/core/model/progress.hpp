// Progress computes how the holders of a target advance while they slow each other down. Its unit is the second
// alone: the work that a holder does in one second with the target to itself.
//
// Holders slow each other down if their parts of the target meet (part_set.hpp).
//
// An event costs as much as there are different slowness values among the holders, independent of how many holders
// there are, and the square of the different sets of parts. A thousand applications about which nothing was learned,
// all on the whole target, have one of each.
//
// Pure, not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/short_vector.hpp"
#include "model/part_set.hpp"

namespace hocket::model {

// The parameters by which others slow one application down.
struct Slowness {
  // Slowdown factor beside one that demands all of the target; 0: use that of the target.
  double interference = 0;
  double disturbance = 0;  // extra time for each other, relative, whatever it demands
  bool operator==(const Slowness&) const = default;
};

// The use of a target: the number of users and the sum of their demands. A demand is the part, at most 1, of what the
// target can bear that a user takes alone.
struct TargetUse {
  double users = 0;
  double demanded = 0;
  double others() const { return users - 1; }
  double excess() const { return std::max(0.0, demanded - 1); }
};

// Returns the slowdown factor against running alone. It is linear in the demand beyond what the target can bear. If
// each user demands all of the target, it is linear in the number of others (CALCioM, section IV-D).
inline double slowdown(const Slowness& slowness, const TargetUse& use) {
  return 1 + (slowness.interference - 1) * use.excess() + slowness.disturbance * use.others();
}

// Sums over all users of one target, from which the progress of each is derived.
class Progress {
 public:
  // The work of one user, or of all.
  struct ServiceSums {
    double served_s = 0;  // progress, in seconds alone
    double shared_s = 0;  // time beside others
    double others_s = 0;  // number of others, integrated over shared_s
    double excess_s = 0;  // excess demand, integrated over shared_s
  };

  // A user's token: the sums at its start, to be subtracted. It belongs to one Progress and must not outlive it.
  class UserToken {
   public:
    bool active() const { return pace_ != none; }

   private:
    friend class Progress;
    static constexpr auto none = static_cast<std::size_t>(-1);
    std::size_t pace_ = none;
    double demanded_ = 0;
    ServiceSums taken_;  // sums when last taken
  };

  // Adds a user of these parts that advances from now on. `demanded` is its demand, 0 to 1.
  UserToken enter(const Slowness& slowness, double demanded, const PartSet& parts = {});
  // Removes a user. Its work must have been taken before, or it is lost.
  void leave(UserToken& user);
  // Advances all users by `passed_s` seconds. `of_target` is the interference of users that have none of their own.
  void advance(double passed_s, double of_target);
  // Returns the work of an active user since it came, or since the last `take`. `take` also starts counting anew.
  ServiceSums seen(const UserToken& user) const;
  ServiceSums take(UserToken& user) const;

 private:
  // The users of equal parts. They have the same others, so one sum of each kind is enough.
  struct PartsGroup {
    PartSet parts;
    std::size_t users = 0;
    double demanded = 0;  // of its users
    double shared_s = 0;
    double others_s = 0;
    double excess_s = 0;
  };
  // The users of equal slowness and equal parts. They advance equally.
  struct SlownessGroup {
    Slowness slowness;
    std::size_t group = 0;  // number of the PartsGroup
    double served_s = 0;
    std::size_t users = 0;
  };
  ServiceSums all(const UserToken& user) const {
    const SlownessGroup& pace = paces_[user.pace_];
    const PartsGroup& group = groups_[pace.group];
    return {pace.served_s, group.shared_s, group.others_s, group.excess_s};
  }
  std::size_t group_of(const PartSet& parts);
  TargetUse use_beside(const PartsGroup& group) const;

  ShortVector<SlownessGroup> paces_;  // entries without users are reused, here and below
  ShortVector<PartsGroup> groups_;
  std::size_t users_ = 0;
};

}  // namespace hocket::model
