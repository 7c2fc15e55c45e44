// Sums, differences and products that stay at the end of the range instead of overflowing, because reported values may
// be any number. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <limits>

#include "base/time.hpp"

namespace hocket {

constexpr std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

constexpr std::int64_t saturating_difference(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

// Returns the product. Precondition: neither factor is negative.
constexpr std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

constexpr Duration saturating_sum(Duration a, Duration b) { return Duration{saturating_sum(a.count(), b.count())}; }
constexpr Time saturating_sum(Time t, Duration d) { return Time{saturating_sum(t.time_since_epoch(), d)}; }

}  // namespace hocket
