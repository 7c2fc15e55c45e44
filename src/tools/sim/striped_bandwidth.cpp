#include "sim/striped_bandwidth.hpp"

#include <algorithm>
#include <numeric>

namespace hocket::sim {

StripedBandwidth::StripedBandwidth(double bytes_per_s, double interference, BandwidthSharing sharing, WriteCache cache,
                                   std::size_t parts) {
  const auto count = static_cast<double>(parts);
  const WriteCache share{cache.bytes / count, cache.bytes_per_s / count};
  for (std::size_t i = 0; i < parts; ++i) parts_.emplace_back(bytes_per_s / count, interference, sharing, share);
  owners_.resize(parts);
}

void StripedBandwidth::advance(Time now) {
  if (active_ > 0) busy_ += now - now_;
  if (active_ > 1) overlap_ += now - now_;
  now_ = now;
}

StripedBandwidth::TransferNumber StripedBandwidth::start(Time now, double bytes, double most_bytes_per_s, double weight,
                                                         const PartNumbers& on) {
  advance(now);
  if (unused_.empty()) {
    unused_.push_back(static_cast<TransferNumber>(stripes_.size()));
    stripes_.emplace_back();
  }
  const TransferNumber transfer = unused_.back();
  unused_.pop_back();
  PartNumbers used = on;
  if (used.empty()) {
    used.resize(parts_.size());
    std::iota(used.begin(), used.end(), 0);
  }
  const auto count = static_cast<double>(used.size());
  for (const std::size_t part : used) {
    const TransferNumber number = parts_[part].start(now, bytes / count, most_bytes_per_s / count, weight);
    if (number >= owners_[part].size()) owners_[part].resize(number + 1);
    owners_[part][number] = transfer;
    stripes_[transfer].push_back({part, number});
  }
  ++active_;
  return transfer;
}

void StripedBandwidth::take_ended(Time now, std::vector<TransferNumber>& ended) {
  advance(now);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    ended_.clear();
    parts_[part].take_ended(now, ended_);
    for (const TransferNumber number : ended_) {
      const TransferNumber transfer = owners_[part][number];
      std::erase_if(stripes_[transfer], [&](const Stripe& one) { return one.part == part; });
      if (!stripes_[transfer].empty()) continue;
      ended.push_back(transfer);
      remove(transfer);
    }
  }
}

double StripedBandwidth::left(Time now, TransferNumber transfer) {
  advance(now);
  double bytes = 0;
  for (const Stripe& stripe : stripes_[transfer]) bytes += parts_[stripe.part].left(now, stripe.transfer);
  return bytes;
}

double StripedBandwidth::stop(Time now, TransferNumber transfer) {
  advance(now);
  double bytes = 0;
  for (const Stripe& stripe : stripes_[transfer]) bytes += parts_[stripe.part].stop(now, stripe.transfer);
  remove(transfer);
  return bytes;
}

void StripedBandwidth::set_weight(Time now, TransferNumber transfer, double weight) {
  for (const Stripe& stripe : stripes_[transfer]) parts_[stripe.part].set_weight(now, stripe.transfer, weight);
}

Time StripedBandwidth::next_end() const {
  Time next = Time::max();
  for (const SharedBandwidth& part : parts_) next = std::min(next, part.next_end());
  return next;
}

void StripedBandwidth::remove(TransferNumber transfer) {
  stripes_[transfer].clear();
  unused_.push_back(transfer);
  --active_;
}

}  // namespace hocket::sim
