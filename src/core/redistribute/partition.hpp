// Distribution of the elements of an array over processes: each process holds one range, in order. The redistribution
// plans (plan.hpp) use it, and code that asks for a local range. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hocket::redistribute {

struct ElementRange {  // elements first … end - 1
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - first; }
  bool operator==(const ElementRange&) const = default;
};

// A division of 0 … length - 1 into consecutive ranges, some of which may be empty.
class Partition {
 public:
  Partition() = default;
  // Makes a partition from parts + 1 bounds, which do not decrease, from 0 to the length.
  explicit Partition(std::vector<std::int64_t> bounds);

  // Returns shares that differ by one at most; larger ones come first. Preconditions: length >= 0, parts >= 1.
  static Partition block(std::int64_t length, int parts);
  // Returns shares in proportion to the weights, each off by less than one element (FlexMPI's load balance). A weight
  // that is not finite or not above 0 counts as the smallest valid one. If none is valid, the shares are equal.
  // Preconditions: length >= 0, at least one weight.
  static Partition weighted(std::int64_t length, std::span<const double> weights);

  int parts() const { return bounds_.empty() ? 0 : static_cast<int>(bounds_.size()) - 1; }
  std::int64_t length() const { return bounds_.empty() ? 0 : bounds_.back(); }
  ElementRange part(int k) const {
    return {bounds_[static_cast<std::size_t>(k)], bounds_[static_cast<std::size_t>(k) + 1]};
  }
  std::span<const std::int64_t> bounds() const { return bounds_; }
  bool operator==(const Partition&) const = default;

 private:
  std::vector<std::int64_t> bounds_;  // part k is bounds_[k] … bounds_[k + 1] - 1
};

}  // namespace hocket::redistribute
