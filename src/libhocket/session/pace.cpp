#include "session/pace.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "session/heartbeat.hpp"

namespace hocket::runtime {
namespace {

constexpr double weight = 0.7;        // factor on the learnt bytes and seconds at each new access
constexpr double least_share = 1e-6;  // avoids a division by zero
// Cap of unused share: a process that slept too long may use so much time to catch up.
constexpr Duration most_credit = std::chrono::milliseconds{50};
// Shorter waits are skipped and add up, because a sleep takes longer than that.
constexpr Duration worth_sleeping = std::chrono::milliseconds{1};
// Lead over its share at which an access stops: smaller leads would cost more in stops than they give back.
constexpr Duration worth_stopping = std::chrono::milliseconds{100};
constexpr double longest_s = 1e6;  // cap of computed times, in seconds, so that they fit a Duration
// Interval at which a waiting thread checks its request: another thread receives a new share or PAUSE_IO.
constexpr Duration between_looks = std::chrono::milliseconds{10};

}  // namespace

void AccessPace::allow(double share) {
  if (share == run_.share) return;
  run_.share = share;
  begin_anew(run_.end);
}

void AccessPace::moved(Time end, Duration io, std::int64_t bytes, double share, bool alone, Duration stopped) {
  if (bytes <= 0 || io <= Duration{}) return;
  const auto moved = static_cast<double>(bytes);
  if (alone) {
    learnt_bytes_ = weight * learnt_bytes_ + moved;
    learnt_s_ = weight * learnt_s_ + to_s(io);
  }
  // It is not known how many of the bytes were moved under which share, so none are charged.
  if (alone || share != run_.share) {
    run_.share = alone ? 1 : share;
    return begin_anew(end);
  }
  const Time begin = end - io - stopped;
  if (begin > due(share) + most_credit) begin_anew(begin);
  run_.end = end;
  run_.bytes += moved;
  run_.io_s += to_s(io);
}

void AccessPace::begin_anew(Time now) { run_ = {.share = run_.share, .begin = now, .end = now}; }

Time AccessPace::due(double share) const {
  if (share >= 1 || run_.bytes <= 0 || !(learnt_s_ > 0)) return run_.end;
  // A smaller new share does not apply to bytes moved under the larger one. The I/O time bounds the wait if the learnt
  // rate is too low.
  const double part = std::max({share, run_.share, least_share});
  const double at_share_s = std::min({run_.bytes / (learnt_bytes_ / learnt_s_) / part, run_.io_s / part, longest_s});
  return run_.begin + from_s(at_share_s);
}

Time AccessPace::next(double share) const { return std::clamp(due(share), run_.end, run_.end + longest_wait); }

void PacedAccess::moves_from(Time now) {
  begin_ = now;
  settled_bytes_ = known_bytes_ = 0;
  stopped_ = {};
}

void PacedAccess::change_share(double share) {
  settles_ |= share != share_;
  share_ = share;
}

bool PacedAccess::is_ahead(Time now, std::int64_t bytes) {
  if (now < look_again_) return false;
  if (settles_) settle(now, bytes);
  const Time due = so_far(now, bytes).due(share_);
  // An access that is behind begins a new account. Only at the end of a round: its bytes are known only then.
  if (std::exchange(known_bytes_, bytes) < bytes && now > due + most_credit) settle(now, bytes);
  return due >= now + worth_stopping;
}

AccessPace PacedAccess::stop(Time now, std::int64_t bytes) {
  const AccessPace pace = so_far(now, bytes);
  if (pace.due(share_) < now + worth_stopping) look_again_ = now + worth_stopping;
  return pace;
}

AccessPace PacedAccess::so_far(Time now, std::int64_t bytes) const {
  AccessPace ended = pace_;
  if (settles_) {
    ended.allow(share_);
    ended.begin_anew(now);
  } else {
    ended.moved(now, now - begin_ - stopped_, bytes - settled_bytes_, share_, false, stopped_);
  }
  return ended;
}

void PacedAccess::settle(Time now, std::int64_t bytes) {
  settles_ = false;
  pace_.allow(share_);
  pace_.begin_anew(now);
  begin_ = now;
  settled_bytes_ = bytes;
  stopped_ = {};
}

bool keep(const AccessPace& pace, Session& session, RequestId request) {
  while (session.standing(request) == Standing::granted) {
    const Duration left = pace.next(session.share(request).part) - node_now();
    if (left < worth_sleeping) return true;
    beat();
    std::this_thread::sleep_for(std::min(left, between_looks));
  }
  return false;
}

}  // namespace hocket::runtime
