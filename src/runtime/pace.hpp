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
  // An access took `io` up to `end`, and is allowed this share now. `alone`: all of the bandwidth was its own all the
  // time, so it tells how fast the target is. `stopped`: for so long it stood still on its way.
  void moved(Time end, Duration io, std::int64_t bytes, double share, bool alone, Duration stopped = {});
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

// An access while it is under way.
struct PacedAccess {
  // Where it has moved `bytes` by now and ended here, had it `share` of the target.
  Pace so_far(Time now, std::int64_t bytes) const {
    Pace ended = pace;
    ended.moved(now, now - begin - stopped, bytes, share, false, stopped);
    return ended;
  }

  RequestId request;  // none: there is no access
  Pace pace;          // before it
  Time begin{};
  Duration stopped{};
  double share = 1;         // as it was
  std::uint64_t known = 0;  // after so many changes of the process's requests
};

// Waits until `pace` lets the access of this request begin: for as long as it is granted, and no longer than its share
// asks for. False: it is not granted any more.
bool keep(const Pace& pace, Member& member, RequestId request);

}  // namespace hocket::runtime
