// How the elements of an array are shared out over the processes: each holds one interval, in order.
//
// Pure. Used by the plans (plan.hpp), and by whoever asks for a local range.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hocket::redistribute {

// Elements first … end - 1.
struct Interval {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - first; }
  bool operator==(const Interval&) const = default;
};

class Partition {
 public:
  Partition() = default;
  // `bounds`: parts + 1 numbers that do not fall, from 0 to the length.
  explicit Partition(std::vector<std::int64_t> bounds);

  // Shares that differ by one at most, the larger ones first. Preconditions: length >= 0, parts >= 1.
  static Partition block(std::int64_t length, int parts);
  // Shares in proportion to the weights, each off by less than one element. Weights that are not above 0 or not finite
  // count as the smallest that is; all of them such: equal shares. (FlexMPI's load balance.)
  static Partition weighted(std::int64_t length, std::span<const double> weights);

  int parts() const { return bounds_.empty() ? 0 : static_cast<int>(bounds_.size()) - 1; }
  std::int64_t length() const { return bounds_.empty() ? 0 : bounds_.back(); }
  Interval part(int k) const {
    return {bounds_[static_cast<std::size_t>(k)], bounds_[static_cast<std::size_t>(k) + 1]};
  }
  std::span<const std::int64_t> bounds() const { return bounds_; }
  bool operator==(const Partition&) const = default;

 private:
  std::vector<std::int64_t> bounds_;
};

}  // namespace hocket::redistribute
