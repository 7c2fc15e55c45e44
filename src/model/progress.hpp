// How those who have a target get on beside each other. An event costs as much as there are different paces among them,
// not as they are: a thousand applications that nothing was learnt of have one.
//
// Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace hocket::model {

// How many times slower than alone one becomes beside `others`: linear in their number (CALCioM, section IV-D).
inline double slowdown(double interference, double others) { return 1 + (interference - 1) * others; }

// Of all users of one target.
class Progress {
 public:
  // What one of them has done.
  struct Sums {
    double served_s = 0;      // progress, in seconds alone
    double shared_s = 0;      // beside others
    double shared_count = 0;  // of them and itself, summed over those seconds
  };

  class User {
   public:
    bool active() const { return pace_ != none; }

   private:
    friend class Progress;
    static constexpr auto none = static_cast<std::size_t>(-1);
    std::size_t pace_ = none;
    Sums taken_;  // of the sums of its pace
  };

  // From now on it gets on, slower beside one other by that factor of its own; 0: by the target's.
  User enter(double interference);
  // It gets on no more. What it has done is taken before.
  void leave(User& user);
  // Seconds pass. `of_target`: the factor of those that have none of their own.
  void advance(double passed_s, double of_target);
  // What an active user has done since it came, or since it was taken last.
  Sums seen(const User& user) const;
  Sums take(User& user) const;

 private:
  struct Pace {
    double interference = 0;
    double served_s = 0;
    std::size_t users = 0;
  };
  Sums all(const User& user) const { return {paces_[user.pace_].served_s, shared_s_, shared_count_}; }

  std::vector<Pace> paces_;  // those without users are used again
  std::size_t users_ = 0;
  double shared_s_ = 0;
  double shared_count_ = 0;
};

}  // namespace hocket::model
