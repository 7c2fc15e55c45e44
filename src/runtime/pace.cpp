#include "runtime/pace.hpp"

#include <algorithm>
#include <thread>

#include "base/clock.hpp"

namespace hocket::runtime {
namespace {

constexpr double weight = 0.3;  // of a new rate against those before it
// Another share, or the word to pause, is heard of by another thread.
constexpr Duration between_looks = std::chrono::milliseconds{10};

}  // namespace

void Pace::moved(Time end, Duration io, std::int64_t bytes, double share) {
  if (bytes <= 0 || io <= Duration{}) return;
  begin_ = end - io;
  end_ = end;
  bytes_ = bytes;
  if (share < 1) return;
  const double rate = static_cast<double>(bytes) / to_s(io);
  bytes_per_s_ = bytes_per_s_ > 0 ? bytes_per_s_ + weight * (rate - bytes_per_s_) : rate;
}

Time Pace::next(double share) const {
  if (share >= 1 || !(bytes_per_s_ > 0)) return end_;
  const double at_share_s = static_cast<double>(bytes_) / (bytes_per_s_ * std::max(share, 1e-6));
  return std::clamp(begin_ + from_s(std::min(at_share_s, 1e6)), end_, end_ + longest_wait);
}

void keep(const Pace& pace, Member& member, RequestId request) {
  for (Time now = node_now();; now = node_now()) {
    const Duration left = pace.next(member.share(request)) - now;
    if (left <= Duration{}) return;
    std::this_thread::sleep_for(std::min(left, between_looks));
  }
}

}  // namespace hocket::runtime
