#include "model/resize_costs.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/saturating.hpp"
#include "model/measures.hpp"

namespace hocket::model {
namespace {

// Sums over the resizes of one group.
struct RegressionSums {
  double count = 0;
  double started = 0;
  double stopped_s = 0;

  void add(double more_started, double more_stopped_s) {
    ++count;
    started += more_started;
    stopped_s += more_stopped_s;
  }
};

// A fitted line: cost in seconds over started processes.
struct CostLine {
  double at_mean = 0;  // cost at the mean number of started processes
  double mean = 0;     // mean number of started processes
  double slope = 0;    // never negative: more processes do not cost less
  double at(double started) const { return std::max(0.0, at_mean + slope * (started - mean)); }
};

// Fits a line through the resizes for which `counts` is true, of which there must be one. The uncertainty is 0 while
// too few resizes determine it.
template <class Resizes, class Counts>
Estimate fitted(const Resizes& resizes, const Counts& counts, double started) {
  RegressionSums sums;
  for (const auto& one : resizes) {
    if (counts(one)) sums.add(one.started, one.stopped_s);
  }
  CostLine line{sums.stopped_s / sums.count, sums.started / sums.count, 0};
  double squares = 0;
  double products = 0;
  for (const auto& one : resizes) {
    if (!counts(one)) continue;
    squares += (one.started - line.mean) * (one.started - line.mean);
    products += (one.started - line.mean) * (one.stopped_s - line.at_mean);
  }
  if (squares > 0) line.slope = std::max(0.0, products / squares);
  double off = 0;
  for (const auto& one : resizes) {
    if (counts(one)) off += (one.stopped_s - line.at(one.started)) * (one.stopped_s - line.at(one.started));
  }
  const double degrees = sums.count - (squares > 0 ? 2 : 1);
  return {line.at(started), degrees > 0 ? coverage * std::sqrt(off / degrees) : 0};
}

}  // namespace

void ResizeCosts::add(const ResizeKind& kind, Duration stopped) {
  stopped = std::max(stopped, Duration{});
  if (kept_.size() == capacity) kept_.erase(kept_.begin());
  kept_.push_back({kind.targets > kind.sources, static_cast<double>(std::max<std::int64_t>(0, kind.started)),
                   to_s(stopped), kind.method});
  ++resizes_;
  stopped_ = saturating_sum(stopped_, stopped);
}

std::optional<Estimate> ResizeCosts::expected(const ResizeKind& kind) const {
  const bool grows = kind.targets > kind.sources;
  const std::function<bool(const Seen&)> nearest_first[] = {
      [&](const Seen& one) { return one.grows == grows && one.method == kind.method; },
      [&](const Seen& one) { return one.grows == grows; },
      [&](const Seen& one) { return one.method == kind.method; },
      [](const Seen&) { return true; },
  };
  for (const auto& counts : nearest_first) {
    if (std::any_of(kept_.begin(), kept_.end(), counts)) {
      return fitted(kept_, counts, static_cast<double>(std::max<std::int64_t>(0, kind.started)));
    }
  }
  return std::nullopt;
}

}  // namespace hocket::model
