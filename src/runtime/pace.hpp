// How an application keeps to its share of a target's bandwidth while others have the target too (GRANT_IO; IO-SETS,
// section 3): an access that takes less time than it would at that share is followed by a wait.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "runtime/member.hpp"

namespace hocket::runtime {

// Pure. Of accesses that are made one after the other.
class Pace {
 public:
  // An access took `io` up to `end`; `share`: what it was allowed of the bandwidth.
  void moved(Time end, Duration io, std::int64_t bytes, double share);
  // When the next one may begin at that share. Computing meanwhile is as good as waiting; nobody waits for longer than
  // `longest_wait`, or before an access has shown how fast the target is with the whole of it.
  Time next(double share) const;

  static constexpr Duration longest_wait = std::chrono::seconds{5};

 private:
  double bytes_per_s_ = 0;  // with all of the bandwidth
  Time begin_{};            // of the last access
  Time end_{};
  std::int64_t bytes_ = 0;
};

// Waits until `pace` lets the access of this request begin: for as long as it is granted, and no longer than its share
// asks for.
void keep(const Pace& pace, Member& member, RequestId request);

}  // namespace hocket::runtime
