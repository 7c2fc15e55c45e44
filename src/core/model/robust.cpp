#include "model/robust.hpp"

#include <algorithm>
#include <cmath>

namespace hocket::model {
namespace {

constexpr std::size_t judges = 5;   // newest values, whose median is the present usual value
constexpr std::size_t changed = 3;  // this many unusual values in a row belong to an earlier time

using Judges = std::array<double, judges>;

// Of two pairs the smaller minimum and the larger maximum cannot be the median of five; that of the three others is.
double median(const Judges& of) {
  static_assert(judges == 5);
  const double low = std::max(std::min(of[0], of[1]), std::min(of[2], of[3]));
  const double high = std::min(std::max(of[0], of[1]), std::max(of[2], of[3]));
  return std::max(std::min(low, high), std::min(std::max(low, high), of[4]));
}

// Returns mean and standard deviation of the values for which `counts` is true.
template <class Counts>
Moments moments_of(const EachPhase<double>& values, std::size_t count, const Counts& counts) {
  double sum = 0;
  double used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!counts(values[i])) continue;
    sum += values[i];
    used += 1;
  }
  if (used == 0) return {};
  const double mean = sum / used;
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (counts(values[i])) squares += (values[i] - mean) * (values[i] - mean);
  }
  return {mean, used < 2 ? 0 : std::sqrt(squares / (used - 1))};
}

}  // namespace

Moments Samples::moments() const {
  const auto all = [](double) { return true; };
  if (count_ < judges) return moments_of(values_, count_, all);

  Judges newest{};
  std::copy_n(values_.begin(), judges, newest.begin());
  const double usual = median(newest);
  for (double& value : newest) value = std::abs(value - usual);
  // A value is far if it is beyond a quarter of the usual value and beyond five standard deviations. The latter are
  // 7.4 median deviations.
  const double far = std::max(0.25 * std::abs(usual), 7.4 * median(newest));
  const auto near = [&](double value) { return std::abs(value - usual) <= far; };

  std::size_t count = count_;
  std::size_t unusual = 0;
  std::size_t in_a_row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    in_a_row = near(values_[i]) ? 0 : in_a_row + 1;
    unusual += in_a_row > 0;
    if (in_a_row < changed) continue;
    count = i + 1 - changed;
    unusual -= changed;
  }
  // If unusual values are frequent, they are no accidents but belong to the application.
  return unusual * 4 > count ? moments_of(values_, count, all) : moments_of(values_, count, near);
}

}  // namespace hocket::model
