// How an application keeps to its share of a target's bandwidth while others have the target too (GRANT_IO; IO-SETS,
// section 3): accesses that take less time than they would at that share are followed by a wait, and those by hocket
// stop between rounds for it.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "runtime/member.hpp"

namespace hocket::runtime {

// Pure. Of one process's accesses of one target; of threads at once, it knows the access that has ended last.
class Pace {
 public:
  // What follows has this share. What was moved with another one is settled.
  void allow(double share);
  // An access took `io` up to `end`, with this share at its end: if that was another one before, it owes nothing.
  // `alone`: all of the bandwidth was its own all the time, so it tells how fast the target is, and owes nothing.
  // `stopped`: for so long it stood still on its way.
  void moved(Time end, Duration io, std::int64_t bytes, double share, bool alone, Duration stopped = {});
  // With what `other` has moved, and not settled, in the place of its own.
  void go_on_from(const Pace& other) { run_ = other.run_; }
  // What was moved until now is settled.
  void begin_anew(Time now);

  // When the next one may begin at that share; a smaller one than that of what was moved makes it no later. Computing
  // meanwhile is as good as waiting. No wait is longer than `longest_wait`, and all together are no longer than
  // (1/share − 1) times the accesses, however wrong the rate; there is none before an access has shown one.
  Time next(double share) const;
  // The same without that bound, and where it is in the past.
  Time due(double share) const;

  static constexpr Duration longest_wait = std::chrono::seconds{5};

 private:
  double learnt_bytes_ = 0;  // with all of the bandwidth, the last ones above all
  double learnt_s_ = 0;
  // The accesses since one began that had nothing to wait for, all with the same share.
  struct Run {
    double share = 1;
    Time begin{};
    Time end{};
    double bytes = 0;
    double io_s = 0;
  };
  Run run_;
};

// One access of a thread while it is under way, in rounds. Pure.
class PacedAccess {
 public:
  PacedAccess() = default;
  PacedAccess(RequestId request, const Pace& before, double share) : request_(request), pace_(before), share_(share) {
    pace_.allow(share);
  }

  RequestId request() const { return request_; }  // none: there is no access
  double share() const { return share_; }
  bool moves() const { return begin_ != Time{}; }
  // Its data begin to move, perhaps anew.
  void moves_from(Time now);
  // It has stood still.
  void stopped(Duration time) { stopped_ += time; }
  // What has been moved by now, as `is_ahead` hears, is settled then.
  void change_share(double share);

  // Whether it is so far ahead of its share that it is worth to stop, with `bytes` moved by now. Who is behind has no
  // more to the good than a little.
  bool is_ahead(Time now, std::int64_t bytes);
  // It was stopped for that: the pace, now that all is known. Not again at once, if it was hardly ahead.
  Pace stop(Time now, std::int64_t bytes);
  // The pace if it ended now.
  Pace so_far(Time now, std::int64_t bytes) const;

 private:
  void settle(Time now, std::int64_t bytes);

  RequestId request_;
  Pace pace_;  // before what is counted here
  double share_ = 1;
  bool settles_ = false;
  Time begin_{};
  std::int64_t settled_bytes_ = 0;
  std::int64_t known_bytes_ = 0;  // when it was looked at last
  Duration stopped_{};
  Time look_again_{};
};

// Waits until `pace` lets the access of this request begin, or go on: for as long as it is granted, and no longer than
// its share asks for. False: it is not granted any more.
bool keep(const Pace& pace, Member& member, RequestId request);

}  // namespace hocket::runtime
