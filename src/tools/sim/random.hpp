// Generates random numbers by position instead of by order: the same (key, stream, number) always gives the same
// value. So the random events of one application depend neither on their time, nor on the policy, nor on other
// applications. Stateless apart from its key, and therefore safe to share between threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>

#include "base/splitmix.hpp"

namespace hocket::sim {

// The purpose of a random number. Each purpose has its own sequence, so one never shifts another.
enum class RandomStream : std::uint64_t {
  jitter = 1,
  period_change,
  phase_skip,
  death,
  resize,
  values,
  gap,
  announcement
};

// A random source with a key made of the scenario's seed and a name, for instance an application's.
class Random {
 public:
  Random(std::uint64_t seed, std::string_view name) : key_(mixed(seed)) {
    for (const char c : name) key_ = mixed(key_ ^ static_cast<unsigned char>(c));
  }

  // Returns a number that is uniformly distributed in (0, 1). Neither end occurs, so its logarithm is finite.
  double uniform(RandomStream stream, std::uint64_t number) const {
    const std::uint64_t bits = mixed(mixed(key_ ^ (static_cast<std::uint64_t>(stream) << 56U)) + number);
    return (static_cast<double>(bits >> 11U) + 0.5) * 0x1p-53;
  }
  // Returns two independent normally distributed numbers, mean 0 and variance 1 (Box and Muller). They use the
  // uniform numbers 2 n and 2 n + 1 of the stream.
  std::pair<double, double> normal(RandomStream stream, std::uint64_t number) const {
    const double radius = std::sqrt(-2 * std::log(uniform(stream, 2 * number)));
    const double angle = 2 * std::numbers::pi * uniform(stream, 2 * number + 1);
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

 private:
  static constexpr std::uint64_t mixed(std::uint64_t x) { return splitmix(x + splitmix_step); }

  std::uint64_t key_;
};

// Returns a lognormal factor with mean 1 and the given relative standard deviation. It is always positive. `normal`
// is a standard normal number.
inline double jitter_factor(double relative_deviation, double normal) {
  if (relative_deviation == 0) return 1;
  const double variance = std::log1p(relative_deviation * relative_deviation);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace hocket::sim
