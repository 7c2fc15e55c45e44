#include "sim/shared_bandwidth.hpp"

#include <algorithm>
#include <cmath>

namespace hocket::sim {
namespace {

// The time after `now` in which so many bytes are through, rounded up to whole nanoseconds.
Time after(Time now, double bytes, double bytes_per_s) {
  constexpr double longest = 4e18;  // ns, within int64
  const double ns = std::ceil(std::max(0.0, bytes) / bytes_per_s * 1e9);
  return now + Duration{static_cast<std::int64_t>(std::min(ns, longest - static_cast<double>(to_ns(now))))};
}

}  // namespace

SharedBandwidth::Transfer SharedBandwidth::new_transfer() {
  if (unused_.empty()) {
    unused_.push_back(static_cast<Transfer>(states_.size()));
    states_.emplace_back();
  }
  const Transfer transfer = unused_.back();
  unused_.pop_back();
  return transfer;
}

SharedBandwidth::Transfer SharedBandwidth::start(Time now, double bytes, double most_bytes_per_s) {
  advance(now);
  const Transfer transfer = new_transfer();
  if (sharing_ == Sharing::queued) {
    queued_.push_back(transfer);
    queued_bytes_ += bytes;
    return transfer;
  }
  // One that can use all there is never leaves the sharing ones.
  double most = unlimited;
  if (most_bytes_per_s < bandwidth_) most = most_bytes_per_s;
  states_[transfer] = {most, 0, {}, virtual_ + bytes};
  sharing_by_end_.set(transfer, virtual_ + bytes);
  if (most != unlimited) sharing_by_most_.set(transfer, most);
  rebalance();
  return transfer;
}

void SharedBandwidth::take_ended(Time now, std::vector<Transfer>& ended) {
  advance(now);
  const std::size_t before = ended.size();
  while (!limited_by_end_.empty() && limited_by_end_.top_key() <= now) {
    ended.push_back(limited_by_end_.top());
    remove(ended.back());
  }
  // What less than a nanosecond is left of has ended, as times are whole nanoseconds; so has what is lost in rounding.
  const double nothing = std::max(level_ * 1e-9, virtual_ * 1e-15);
  while (!sharing_by_end_.empty() && sharing_by_end_.top_key() - virtual_ <= nothing) {
    ended.push_back(sharing_by_end_.top());
    remove(ended.back());
  }
  if (ended.size() > before) rebalance();
  if (!queued_.empty() && queued_bytes_ <= together() * 1e-9) {
    ended.insert(ended.end(), queued_.begin(), queued_.end());
    unused_.insert(unused_.end(), queued_.begin(), queued_.end());
    queued_.clear();
    queued_bytes_ = 0;
  }
}

Time SharedBandwidth::next_end() const {
  if (!queued_.empty()) return after(now_, queued_bytes_, together());
  Time next = Time::max();
  if (!limited_by_end_.empty()) next = limited_by_end_.top_key();
  if (!sharing_by_end_.empty()) next = std::min(next, after(now_, sharing_by_end_.top_key() - virtual_, level_));
  return next;
}

double SharedBandwidth::rate(Transfer transfer) const {
  return limited_by_end_.contains(transfer) ? states_[transfer].most : level_;
}

void SharedBandwidth::advance(Time now) {
  const Duration passed = now - now_;
  now_ = now;
  if (active() == 0) return;
  busy_ += passed;
  if (active() > 1) overlap_ += passed;
  queued_bytes_ = std::max(0.0, queued_bytes_ - together() * to_s(passed));
  if (!sharing_by_end_.empty()) virtual_ += level_ * to_s(passed);
}

// Of all transfers under way.
double SharedBandwidth::together() const {
  const auto n = static_cast<double>(active());
  return n <= 1 ? bandwidth_ : bandwidth_ / (1 + (interference_ - 1) * (n - 1) / n);
}

double SharedBandwidth::level_with(std::size_t more, double most) const {
  const std::size_t sharing = sharing_by_end_.size() + more;
  return sharing == 0 ? unlimited : (together() - limited_sum_ + most) / static_cast<double>(sharing);
}

// After an arrival the level falls, after an end it rises; with interference it may do either.
void SharedBandwidth::rebalance() {
  while (!limited_by_most_.empty()) {
    const double most = -limited_by_most_.top_key();
    if (most <= level_with(1, most)) break;
    share(limited_by_most_.top());
  }
  while (!sharing_by_most_.empty() && sharing_by_most_.top_key() <= level_with(0, 0)) limit(sharing_by_most_.top());
  level_ = level_with(0, 0);
  if (active() == 0) virtual_ = 0;
}

void SharedBandwidth::limit(Transfer transfer) {
  State& state = states_[transfer];
  state.left = state.virtual_end - virtual_;
  state.since = now_;
  sharing_by_end_.erase(transfer);
  sharing_by_most_.erase(transfer);
  limited_by_end_.set(transfer, after(now_, state.left, state.most));
  limited_by_most_.set(transfer, -state.most);
  limited_sum_ += state.most;
}

void SharedBandwidth::share(Transfer transfer) {
  State& state = states_[transfer];
  const double left = std::max(0.0, state.left - state.most * to_s(now_ - state.since));
  remove(transfer);
  unused_.pop_back();
  state.virtual_end = virtual_ + left;
  sharing_by_end_.set(transfer, state.virtual_end);
  sharing_by_most_.set(transfer, state.most);
}

void SharedBandwidth::remove(Transfer transfer) {
  if (limited_by_end_.contains(transfer)) {
    limited_by_end_.erase(transfer);
    limited_by_most_.erase(transfer);
    // Sums and differences must not drift.
    limited_sum_ = limited_by_end_.empty() ? 0 : limited_sum_ - states_[transfer].most;
  } else {
    sharing_by_end_.erase(transfer);
    sharing_by_most_.erase(transfer);
  }
  unused_.push_back(transfer);
}

}  // namespace hocket::sim
