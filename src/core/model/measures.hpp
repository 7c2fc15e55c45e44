// Constants and conversions by which all parts of the model judge measured values. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::model {

// Standard deviations on each side of a mean. Two cover 19 of 20 values if they have a normal distribution.
inline constexpr double coverage = 2;

// An access or a phase counts as undisturbed if at most `least_shared` of it was beside others. If at least
// `well_shared` of it was, it shows what others cost.
inline constexpr double least_shared = 0.02;
inline constexpr double well_shared = 0.2;
// The upper limit for how many times longer an access takes beside others.
inline constexpr double most_interference = 64;

// More than 30 years is a mistake, and later times would leave the range of Time.
inline constexpr double longest_s = 1e9;

inline double ns_of(Duration d) { return static_cast<double>(d.count()); }

inline Duration from_ns(double ns) {
  constexpr double most = 4e18;  // within int64
  return Duration{static_cast<std::int64_t>(std::clamp(ns, -most, most))};
}

}  // namespace hocket::model
