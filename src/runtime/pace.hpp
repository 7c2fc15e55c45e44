// How an application keeps to its share of a target's bandwidth while others have the target too (GRANT_IO; IO-SETS,
// section 3): accesses that take less time than they would at that share are followed by a wait.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "runtime/member.hpp"

namespace hocket::runtime {

// Pure. Of one process's accesses of one target; of threads at once, it knows the access that has ended last.
class Pace {
 public:
  // An access took `io` up to `end`, and is allowed this share now. `alone`: all of the bandwidth was its own all the
  // time, so it tells how fast the target is.
  void moved(Time end, Duration io, std::int64_t bytes, double share, bool alone);
  // When the next one may begin at that share. Computing meanwhile is as good as waiting. No wait is longer than
  // `longest_wait`, and all together are no longer than (1/share − 1) times the accesses, however wrong the rate; there
  // is none before an access has shown one.
  Time next(double share) const;

  static constexpr Duration longest_wait = std::chrono::seconds{5};

 private:
  double learnt_bytes_ = 0;  // with all of the bandwidth, the last ones above all
  double learnt_s_ = 0;
  // The accesses since one began that had nothing to wait for.
  Time begin_{};
  Time end_{};
  double bytes_ = 0;
  double io_s_ = 0;
};

// Waits until `pace` lets the access of this request begin: for as long as it is granted, and no longer than its share
// asks for. False: it is not granted any more.
bool keep(const Pace& pace, Member& member, RequestId request);

}  // namespace hocket::runtime
