#include "sim/shared_bandwidth.hpp"

#include <algorithm>
#include <cmath>

namespace hocket::sim {
namespace {

// Returns the time after `now` at which so many bytes are transferred, rounded up to whole nanoseconds. Earlier
// rounding errors are subtracted first. Otherwise each stop of a transfer would delay its end by a nanosecond.
Time after(Time now, double bytes, double bytes_per_s) {
  constexpr double longest = 4e18;  // ns, within int64
  constexpr double exact = 1 - 2e-15;
  const double ns = std::ceil(std::max(0.0, bytes) / bytes_per_s * 1e9 * exact);
  return now + Duration{static_cast<std::int64_t>(std::min(ns, longest - static_cast<double>(to_ns(now))))};
}

}  // namespace

SharedBandwidth::TransferNumber SharedBandwidth::new_transfer() {
  if (unused_.empty()) {
    unused_.push_back(static_cast<TransferNumber>(states_.size()));
    states_.emplace_back();
  }
  const TransferNumber transfer = unused_.back();
  unused_.pop_back();
  return transfer;
}

SharedBandwidth::TransferNumber SharedBandwidth::start(Time now, double bytes, double most_bytes_per_s, double weight) {
  advance(now);
  const TransferNumber transfer = new_transfer();
  if (sharing_ == BandwidthSharing::queued) {
    enqueue(transfer, bytes);
    return transfer;
  }
  // A transfer that can use the whole bandwidth never becomes limited.
  states_[transfer].most = most_bytes_per_s < std::max(bandwidth_, cache_.bytes_per_s) ? most_bytes_per_s : unlimited;
  states_[transfer].weight = weight;
  put_among_sharing(transfer, bytes);
  rebalance();
  return transfer;
}

void SharedBandwidth::enqueue(TransferNumber transfer, double bytes) {
  // The scale shrinks with every byte served. Fold it into the transfers before it leaves the range of a double.
  constexpr double smallest = 1e-100;
  if (queued_scale_ < smallest) {
    for (const TransferNumber other : queued_) states_[other].left *= queued_scale_;
    queued_scale_ = 1;
  }
  states_[transfer].left = bytes / queued_scale_;
  states_[transfer].place = queued_.size();
  queued_.push_back(transfer);
  queued_bytes_ += bytes;
}

void SharedBandwidth::dequeue(TransferNumber transfer, double bytes) {
  const std::size_t place = states_[transfer].place;
  // The last transfer takes the free position, so removal costs O(1).
  states_[queued_.back()].place = place;
  queued_[place] = queued_.back();
  queued_.pop_back();
  queued_bytes_ = queued_.empty() ? 0 : std::max(0.0, queued_bytes_ - bytes);
  if (queued_.empty()) queued_scale_ = 1;
  unused_.push_back(transfer);
}

double SharedBandwidth::left(Time now, TransferNumber transfer) {
  advance(now);
  return left_now(transfer);
}

double SharedBandwidth::left_now(TransferNumber transfer) const {
  const TransferState& state = states_[transfer];
  double bytes = (state.virtual_end - virtual_) * state.weight;
  if (sharing_ == BandwidthSharing::queued) {
    bytes = state.left * queued_scale_;
  } else if (limited_by_end_.contains(transfer)) {
    bytes = state.left - state.most * to_s(now_ - state.since);
  }
  return std::max(0.0, bytes);
}

double SharedBandwidth::stop(Time now, TransferNumber transfer) {
  const double bytes = left(now, transfer);
  if (sharing_ == BandwidthSharing::queued) {
    dequeue(transfer, bytes);
    return bytes;
  }
  remove(transfer);
  rebalance();
  return bytes;
}

void SharedBandwidth::set_weight(Time now, TransferNumber transfer, double weight) {
  if (sharing_ == BandwidthSharing::queued || weight == states_[transfer].weight) return;
  const double bytes = left(now, transfer);
  take_out(transfer);
  states_[transfer].weight = weight;
  put_among_sharing(transfer, bytes);
  rebalance();
}

void SharedBandwidth::take_ended(Time now, std::vector<TransferNumber>& ended) {
  advance(now);
  const std::size_t before = ended.size();
  while (!limited_by_end_.empty() && limited_by_end_.top_key() <= now) {
    ended.push_back(limited_by_end_.top());
    remove(ended.back());
  }
  // Times are whole nanoseconds, so a transfer with less than a nanosecond left has ended. The second bound covers
  // rounding errors of a large virtual time.
  const double nothing = std::max(level_ * 1e-9, virtual_ * 1e-15);
  while (!sharing_by_end_.empty() && sharing_by_end_.top_key() - virtual_ <= nothing) {
    ended.push_back(sharing_by_end_.top());
    remove(ended.back());
  }
  if (ended.size() > before || cache_.bytes > 0) rebalance();
  // Queued transfers all end together.
  if (!queued_.empty() && queued_bytes_ <= together() * 1e-9) {
    ended.insert(ended.end(), queued_.begin(), queued_.end());
    unused_.insert(unused_.end(), queued_.begin(), queued_.end());
    queued_.clear();
    queued_bytes_ = 0;
    queued_scale_ = 1;
  }
}

Time SharedBandwidth::next_end() const {
  Time next = Time::max();
  if (!cache_full_ && inflow() > disks()) next = after(now_, cache_.bytes - cached_, inflow() - disks());
  if (!queued_.empty()) return std::min(next, after(now_, queued_bytes_, together()));
  if (!limited_by_end_.empty()) next = std::min(next, limited_by_end_.top_key());
  if (!sharing_by_end_.empty()) next = std::min(next, after(now_, sharing_by_end_.top_key() - virtual_, level_));
  return next;
}

double SharedBandwidth::rate(TransferNumber transfer) const {
  const TransferState& state = states_[transfer];
  return limited_by_end_.contains(transfer) ? state.most : level_ * state.weight;
}

void SharedBandwidth::advance(Time now) {
  const Duration passed = now - now_;
  now_ = now;
  const double rate_of_all = together();
  if (cache_.bytes > 0) advance_cache(passed);
  if (active() == 0) return;
  busy_ += passed;
  if (active() > 1) overlap_ += passed;
  if (!sharing_by_end_.empty()) virtual_ += level_ * to_s(passed);
  if (queued_bytes_ > 0) {
    const double before = queued_bytes_;
    queued_bytes_ = std::max(0.0, before - rate_of_all * to_s(passed));
    queued_scale_ *= queued_bytes_ / before;
  }
}

// A cache counts as full until a millionth of it is free. Otherwise rounding errors of a full cache, whose inflow is
// what it empties, would make it alternate between full and not full.
void SharedBandwidth::advance_cache(Duration passed) {
  constexpr double nothing = 1e-9;
  constexpr double free_again = 1e-6;
  cached_ = std::clamp(cached_ + (inflow() - disks()) * to_s(passed), 0.0, cache_.bytes);
  const double most = cache_.bytes * (1 - (cache_full_ ? free_again : nothing));
  cache_full_ = cached_ >= most;
}

double SharedBandwidth::inflow() const {
  if (!queued_.empty()) return together();
  return limited_sum_ + (sharing_by_end_.empty() ? 0 : level_ * weight_sum_);
}

// Interference applies from the second transfer on.
double SharedBandwidth::disks() const {
  const auto n = static_cast<double>(active());
  return n <= 1 ? bandwidth_ : bandwidth_ / (1 + (interference_ - 1) * (n - 1) / n);
}

double SharedBandwidth::level_with(double weight, double most) const {
  const double sharing = weight_sum_ + weight;
  return sharing == 0 ? unlimited : (together() - limited_sum_ + most) / sharing;
}

// The level falls after an arrival and rises after an end; with interference it may do either. So a transfer may
// cross the level in both directions.
void SharedBandwidth::rebalance() {
  while (!limited_by_most_.empty()) {
    const TransferState& state = states_[limited_by_most_.top()];
    if (state.most_level() <= level_with(state.weight, state.most)) break;
    share(limited_by_most_.top());
  }
  while (!sharing_by_most_.empty() && sharing_by_most_.top_key() <= level_with(0, 0)) limit(sharing_by_most_.top());
  level_ = level_with(0, 0);
  // Virtual time restarts when the target is idle, which keeps it small and exact.
  if (active() == 0) virtual_ = 0;
}

void SharedBandwidth::limit(TransferNumber transfer) {
  TransferState& state = states_[transfer];
  const double bytes = left_now(transfer);
  take_out(transfer);
  state.left = bytes;
  state.since = now_;
  limited_by_end_.set(transfer, after(now_, bytes, state.most));
  limited_by_most_.set(transfer, -state.most_level());
  limited_sum_ += state.most;
}

void SharedBandwidth::share(TransferNumber transfer) {
  const double bytes = left_now(transfer);
  take_out(transfer);
  put_among_sharing(transfer, bytes);
}

void SharedBandwidth::put_among_sharing(TransferNumber transfer, double bytes) {
  TransferState& state = states_[transfer];
  state.virtual_end = virtual_ + bytes / state.weight;
  sharing_by_end_.set(transfer, state.virtual_end);
  if (state.most != unlimited) sharing_by_most_.set(transfer, state.most_level());
  weight_sum_ += state.weight;
}

// An empty heap sets its sum to 0, so rounding errors do not accumulate.
void SharedBandwidth::take_out(TransferNumber transfer) {
  if (limited_by_end_.contains(transfer)) {
    limited_by_end_.erase(transfer);
    limited_by_most_.erase(transfer);
    limited_sum_ = limited_by_end_.empty() ? 0 : limited_sum_ - states_[transfer].most;
  } else {
    sharing_by_end_.erase(transfer);
    sharing_by_most_.erase(transfer);
    weight_sum_ = sharing_by_end_.empty() ? 0 : weight_sum_ - states_[transfer].weight;
  }
}

void SharedBandwidth::remove(TransferNumber transfer) {
  take_out(transfer);
  unused_.push_back(transfer);
}

}  // namespace hocket::sim
