#include "runtime/pace.hpp"

#include <algorithm>
#include <thread>

#include "base/clock.hpp"

namespace hocket::runtime {
namespace {

constexpr double weight = 0.7;  // of what was learnt before a new access
constexpr double least_share = 1e-6;
// Who slept too long has that much to the good for what follows.
constexpr Duration most_credit = std::chrono::milliseconds{50};
// Shorter waits are left to add up: a sleep takes longer than that.
constexpr Duration worth_sleeping = std::chrono::milliseconds{1};
// Another share, or the word to pause, is heard of by another thread.
constexpr Duration between_looks = std::chrono::milliseconds{10};

}  // namespace

void Pace::moved(Time end, Duration io, std::int64_t bytes, double share, bool alone, Duration stopped) {
  if (bytes <= 0 || io <= Duration{}) return;
  const auto moved = static_cast<double>(bytes);
  if (alone) {
    learnt_bytes_ = weight * learnt_bytes_ + moved;
    learnt_s_ = weight * learnt_s_ + to_s(io);
  }
  const Time begin = end - io - stopped;
  if (alone || begin > next(share) + most_credit) {
    begin_ = begin;
    bytes_ = io_s_ = 0;
  }
  end_ = end;
  bytes_ += moved;
  io_s_ += to_s(io);
}

Time Pace::next(double share) const {
  if (share >= 1 || !(learnt_s_ > 0)) return end_;
  const double part = std::max(share, least_share);
  const double at_share_s = std::min(bytes_ / (learnt_bytes_ / learnt_s_), io_s_) / part;
  return std::clamp(begin_ + from_s(at_share_s), end_, end_ + longest_wait);
}

bool keep(const Pace& pace, Member& member, RequestId request) {
  while (member.standing(request) == Standing::granted) {
    const Duration left = pace.next(member.share(request).part) - node_now();
    if (left < worth_sleeping) return true;
    std::this_thread::sleep_for(std::min(left, between_looks));
  }
  return false;
}

}  // namespace hocket::runtime
