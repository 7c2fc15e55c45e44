// A RunningMean follows a changing quantity, together with its mean deviation, as TCP does for round-trip times (RFC
// 6298). It needs constant memory. Pure, not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hocket::model {

// Mean and deviation have the unit of the values, and are 0 before the first one.
class RunningMean {
 public:
  void add(double value) {
    if (count_++ == 0) {
      mean_ = value;
      deviation_ = std::abs(value) / 2;
      return;
    }
    deviation_ += (std::abs(value - mean_) - deviation_) / 4;
    // The first values have equal weight, so that one odd value at the start is soon outweighed.
    mean_ += (value - mean_) * std::max(0.25, 1.0 / static_cast<double>(count_));
  }

  bool known() const { return count_ > 0; }
  std::int64_t count() const { return count_; }
  double mean() const { return mean_; }
  double deviation() const { return deviation_; }  // mean distance from the mean; half the value after the first one

 private:
  std::int64_t count_ = 0;
  double mean_ = 0;
  double deviation_ = 0;
};

}  // namespace hocket::model
