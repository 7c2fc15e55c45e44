// Random numbers by place instead of by order: the same (key, stream, number) always gives the same value, so that what
// happens to one application does not depend on when it happens, on the policy, or on the others.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>

#include "base/splitmix.hpp"

namespace hocket::sim {

// What a number is drawn for.
enum class Stream : std::uint64_t { jitter = 1, period_change, phase_skip, death, resize, values, gap, announcement };

class Random {
 public:
  Random(std::uint64_t seed, std::string_view name) : key_(mixed(seed)) {
    for (const char c : name) key_ = mixed(key_ ^ static_cast<unsigned char>(c));
  }

  // Evenly in (0, 1).
  double uniform(Stream stream, std::uint64_t number) const {
    const std::uint64_t bits = mixed(mixed(key_ ^ (static_cast<std::uint64_t>(stream) << 56U)) + number);
    return (static_cast<double>(bits >> 11U) + 0.5) * 0x1p-53;
  }
  // Two that are normally distributed, mean 0 and variance 1 (Box and Muller). Uses numbers 2 n and 2 n + 1.
  std::pair<double, double> normal(Stream stream, std::uint64_t number) const {
    const double radius = std::sqrt(-2 * std::log(uniform(stream, 2 * number)));
    const double angle = 2 * std::numbers::pi * uniform(stream, 2 * number + 1);
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

 private:
  static constexpr std::uint64_t mixed(std::uint64_t x) { return splitmix(x + splitmix_step); }

  std::uint64_t key_;
};

// A factor of mean 1 and that relative standard deviation, never 0 or less: lognormal.
inline double jitter_factor(double relative_deviation, double normal) {
  if (relative_deviation == 0) return 1;
  const double variance = std::log1p(relative_deviation * relative_deviation);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace hocket::sim
