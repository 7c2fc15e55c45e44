#include "layout/stripes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hocket::layout {

Striping::Striping(std::span<const int> weights) : servers_(weights.size()) {
  const auto differs = [&](int weight) { return weight != weights.front(); };
  if (std::none_of(weights.begin(), weights.end(), differs)) return;
  const int common = std::accumulate(weights.begin(), weights.end(), 0, std::gcd<int, int>);
  const int stripes = std::accumulate(weights.begin(), weights.end(), 0) / common;
  std::vector<int> behind(servers_);  // its share of the stripes so far, less those that it has; times `stripes`
  while (pattern_.size() < static_cast<std::size_t>(stripes)) {
    for (std::size_t i = 0; i < servers_; ++i) behind[i] += weights[i] / common;
    const auto next = std::max_element(behind.begin(), behind.end());
    *next -= stripes;
    pattern_.push_back(static_cast<std::uint16_t>(next - behind.begin()));
  }
}

StripeChunks::StripeChunks(const FileView& view, Extent data, Striping striping, std::int64_t window_bytes)
    : view_(view),
      left_(data),
      striping_(std::move(striping)),
      servers_(static_cast<std::int64_t>(striping_.servers())),
      window_(std::min(window_bytes, stripe_bytes)) {}

std::int64_t StripeChunks::round_of(std::int64_t offset) const {
  const std::int64_t windows_of_stripe = (stripe_bytes + window_ - 1) / window_;
  const std::int64_t row = offset / stripe_bytes / servers_;
  return row * windows_of_stripe + offset % stripe_bytes / window_;
}

bool StripeChunks::may_have_rounds(Extent file, std::size_t servers, std::int64_t window_bytes) {
  if (file.end <= file.first) return false;
  const std::int64_t last = file.end - 1;
  const std::int64_t row_bytes = stripe_bytes * static_cast<std::int64_t>(servers);
  if (file.first / row_bytes != last / row_bytes) return true;
  if (window_bytes >= stripe_bytes) return false;
  return file.first / stripe_bytes != last / stripe_bytes ||
         file.first % stripe_bytes / window_bytes != last % stripe_bytes / window_bytes;
}

bool StripeChunks::later(const StripeChunk& a, const StripeChunk& b) {
  if (a.round != b.round) return a.round > b.round;
  return a.server != b.server ? a.server > b.server : a.data.first > b.data.first;
}

void StripeChunks::push(const StripeChunk& rest) {
  if (rest.data.count() == 0) return;
  heap_.push_back({rest.server, rest.data, round_of(view_.offset(rest.data.first))});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

// Deals out the stripes of the row in which the next data are.
void StripeChunks::begin_row() {
  const std::int64_t row_bytes = stripe_bytes * servers_;
  const std::int64_t row = view_.offset(left_.first) / row_bytes;
  while (left_.count() > 0) {
    const std::int64_t offset = view_.offset(left_.first);
    if (offset / row_bytes != row) return;
    const std::int64_t stripe = offset / stripe_bytes;
    const std::int64_t end = std::min(left_.end, view_.data_below((stripe + 1) * stripe_bytes));
    push({striping_.server_of_stripe(stripe), {left_.first, end}, 0});
    left_.first = end;
  }
}

std::optional<StripeChunk> StripeChunks::next() {
  if (heap_.empty()) begin_row();
  if (heap_.empty()) return std::nullopt;
  std::pop_heap(heap_.begin(), heap_.end(), later);
  StripeChunk chunk = heap_.back();
  heap_.pop_back();
  const std::int64_t offset = view_.offset(chunk.data.first);
  const std::int64_t window_end = offset - offset % stripe_bytes % window_ + window_;
  const std::int64_t all = chunk.data.end;
  chunk.data.end = std::min(all, view_.data_below(window_end));
  push({chunk.server, {chunk.data.end, all}, 0});
  return chunk;
}

}  // namespace hocket::layout
