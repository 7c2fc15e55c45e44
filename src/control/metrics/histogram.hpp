// A histogram of durations with fixed bounds, as Prometheus defines it. Pure, not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.hpp"

namespace hocket::metrics {

class Histogram {
 public:
  // `bounds_s` are ascending upper bounds in seconds, which are in their bucket. They must outlive the histogram.
  explicit Histogram(std::span<const double> bounds_s) : bounds_s_(bounds_s), counts_(bounds_s.size() + 1) {}

  void add(Duration value) {
    const double value_s = to_s(value);
    const auto bucket = std::ranges::lower_bound(bounds_s_, value_s) - bounds_s_.begin();
    ++counts_[static_cast<std::size_t>(bucket)];
    sum_s_ += value_s;
  }

  std::span<const double> bounds_s() const { return bounds_s_; }
  // Numbers by bucket, not cumulative; the last bucket has no bound.
  const std::vector<std::int64_t>& counts() const { return counts_; }
  double sum_s() const { return sum_s_; }

 private:
  std::span<const double> bounds_s_;
  std::vector<std::int64_t> counts_;
  double sum_s_ = 0;
};

}  // namespace hocket::metrics
