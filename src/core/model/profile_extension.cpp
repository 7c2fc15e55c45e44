#include "model/profile_extension.hpp"

#include <algorithm>
#include <cstdlib>

namespace hocket::model {
namespace {

constexpr std::int64_t tenth = 10;

bool is_same(std::int64_t a, std::int64_t b) { return a == b || std::abs(a - b) < std::max(a, b) / tenth; }

}  // namespace

void ProfileExtension::shows(const CurvePoint& point) {
  const auto& known = profile_.points();
  if (known.empty() || !(point.iteration_s > 0)) return;
  const bool is_common = std::any_of(known.begin(), known.end(),
                                     [&](const CurvePoint& one) { return is_same(one.processes, point.processes); });
  if (is_common) {
    const double io_s = profile_.io(point.processes).value;
    const bool both_do_io = io_s > 0 && point.io_s > 0;
    ratio_ = {point.iteration_s / profile_.iteration(point.processes).value, both_do_io ? point.io_s / io_s : 1};
  } else if (shown_.contains(point.processes) || known.size() + shown_.size() < SpeedupCurve::most_points) {
    shown_[point.processes] = point;
  }
}

std::vector<CurvePoint> ProfileExtension::points() const {
  std::vector<CurvePoint> points;
  if (!ratio_) return points;
  for (const auto& [processes, shown] : shown_) {
    CurvePoint point = shown;
    point.iteration_s /= ratio_->iteration;
    point.iteration_spread_s /= ratio_->iteration;
    point.io_s /= ratio_->io;
    point.io_spread_s /= ratio_->io;
    if (point.comm_s >= 0) point.comm_s = std::min(point.comm_s / ratio_->iteration, point.iteration_s);
    points.push_back(point);
  }
  return points;
}

}  // namespace hocket::model
