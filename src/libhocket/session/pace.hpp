// Throttles an application to its share of a target's bandwidth while others have the target too (GRANT_IO; IO-SETS,
// section 3). An access that took less time than it would at that share is followed by a wait. Collective accesses by
// hocket itself also stop between two rounds for it.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "session/session.hpp"

namespace hocket::runtime {

// Computes when the next access of one target may begin, from the accesses of one process so far. It learns the
// target's rate from accesses that had all of the bandwidth. If several threads access the target concurrently, the
// access that ended last counts. Pure; not thread-safe.
class AccessPace {
 public:
  // Sets the share of the accesses that follow. Bytes that were moved under another share are not charged.
  void allow(double share);
  // Charges an access that took `io` up to `end`, with this share at its end. It is not charged if the share was
  // another one before. `alone`: the access had all of the bandwidth all the time, so it shows the target's rate and is
  // not charged. `stopped` is the time that it was stopped, which `io` does not include.
  void moved(Time end, Duration io, std::int64_t bytes, double share, bool alone, Duration stopped = {});
  // Takes over the charged bytes of `other`, in place of its own. It keeps the rate that it has learnt.
  void go_on_from(const AccessPace& other) { run_ = other.run_; }
  // Cancels the charge of all bytes moved until now.
  void begin_anew(Time now);

  // Returns when the next access may begin at that share. Computing until then counts as waiting. A share smaller than
  // that of the charged bytes does not delay it further. A wait never exceeds `longest_wait`. All waits together never
  // exceed (1/share − 1) times the I/O time of the accesses, however wrong the learnt rate is. There is no wait before
  // an access has shown a rate.
  Time next(double share) const;
  // Returns the same without the bound of `longest_wait`. It may lie before the end of the last access.
  Time due(double share) const;

  static constexpr Duration longest_wait = std::chrono::seconds{5};

 private:
  // The bytes and seconds of accesses with all of the bandwidth, weighted towards the latest.
  double learnt_bytes_ = 0;
  double learnt_s_ = 0;
  // The charged accesses: all with the same share, since the last one that did not have to wait.
  struct ChargedAccesses {
    double share = 1;
    Time begin{};
    Time end{};
    double bytes = 0;
    double io_s = 0;
  };
  ChargedAccesses run_;
};

// Decides when a collective access by hocket, which moves its data in rounds, stops to keep to its share. One object
// belongs to one access of one thread. Pure.
class PacedAccess {
 public:
  PacedAccess() = default;
  PacedAccess(RequestId request, const AccessPace& before, double share)
      : request_(request), pace_(before), share_(share) {
    pace_.allow(share);
  }

  RequestId request() const { return request_; }  // none: there is no access
  double share() const { return share_; }
  bool moves() const { return begin_ != Time{}; }
  // Notes that its data begin to move now. If the access is done again, its bytes count anew.
  void moves_from(Time now);
  // Notes that it was stopped for so long.
  void stopped(Duration time) { stopped_ += time; }
  // Sets its share. The next call of `is_ahead` settles the bytes moved until then, so they are not charged.
  void change_share(double share);

  // Returns true if the access, having moved `bytes`, is so far ahead of its share that stopping pays. An access that
  // is behind accumulates unused share only up to a small cap.
  bool is_ahead(Time now, std::int64_t bytes);
  // Returns the pace when all processes have stopped, and so `bytes` is exact. If the access turns out to be hardly
  // ahead, `is_ahead` is false for a while.
  AccessPace stop(Time now, std::int64_t bytes);
  // Returns the pace as if the access ended now.
  AccessPace so_far(Time now, std::int64_t bytes) const;

 private:
  void settle(Time now, std::int64_t bytes);

  RequestId request_;
  AccessPace pace_;  // before the bytes that are counted here
  double share_ = 1;
  bool settles_ = false;            // the share has changed since the bytes were settled
  Time begin_{};                    // when the bytes that are not settled began to move
  std::int64_t settled_bytes_ = 0;  // not charged
  std::int64_t known_bytes_ = 0;    // at the last call of `is_ahead`
  Duration stopped_{};              // time stopped since begin_
  Time look_again_{};               // `is_ahead` is false until then
};

// Blocks until `pace` lets the access of this request begin or continue. It returns early if the share grows. Returns
// false if the request is no longer granted.
bool keep(const AccessPace& pace, Session& session, RequestId request);

}  // namespace hocket::runtime
