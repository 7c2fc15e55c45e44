// How those who have a target get on beside each other. An event costs as much as there are different paces among them,
// not as they are: a thousand applications that nothing was learnt of have one.
//
// Pure, not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/short_vector.hpp"

namespace hocket::model {

// How others slow one down.
struct Slowness {
  double interference = 0;  // how many times slower it is beside one that demands all of the target; 0: as the target's
  double disturbance = 0;   // how much longer it takes for each of the others, however little they demand
  bool operator==(const Slowness&) const = default;
};

// What goes on at a target: how many use it, and the sum of what they take alone, each as a part, 1 at most, of what
// the target can bear.
struct Use {
  double users = 0;
  double demanded = 0;
  double others() const { return users - 1; }
  double excess() const { return std::max(0.0, demanded - 1); }
};

// How many times slower than alone: linear in what is demanded beyond what the target can bear, thus in the number of
// the others where each demands all of it (CALCioM, section IV-D).
inline double slowdown(const Slowness& slowness, const Use& use) {
  return 1 + (slowness.interference - 1) * use.excess() + slowness.disturbance * use.others();
}

// Of all users of one target.
class Progress {
 public:
  // What one of them has done.
  struct Sums {
    double served_s = 0;  // progress, in seconds alone
    double shared_s = 0;  // beside others
    double others_s = 0;  // their number, summed over those seconds
    double excess_s = 0;  // what was demanded beyond what the target can bear, summed over them
  };

  class User {
   public:
    bool active() const { return pace_ != none; }

   private:
    friend class Progress;
    static constexpr auto none = static_cast<std::size_t>(-1);
    std::size_t pace_ = none;
    double demanded_ = 0;
    Sums taken_;  // of the sums of its pace
  };

  // From now on it gets on. `demanded`: the part of what the target can bear that it takes alone.
  User enter(const Slowness& slowness, double demanded);
  // It gets on no more. What it has done is taken before.
  void leave(User& user);
  // Seconds pass. `of_target`: the interference of those that have none of their own.
  void advance(double passed_s, double of_target);
  // What an active user has done since it came, or since it was taken last.
  Sums seen(const User& user) const;
  Sums take(User& user) const;

 private:
  struct Pace {
    Slowness slowness;
    double served_s = 0;
    std::size_t users = 0;
  };
  Sums all(const User& user) const { return {paces_[user.pace_].served_s, shared_s_, others_s_, excess_s_}; }

  ShortVector<Pace> paces_;  // those without users are used again
  std::size_t users_ = 0;
  double demanded_ = 0;  // of all users
  double shared_s_ = 0;
  double others_s_ = 0;
  double excess_s_ = 0;
};

}  // namespace hocket::model
