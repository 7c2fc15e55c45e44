// What the iterations of a malleable program take, measured from control point to control point.
//
// A report covers at least `least`, and no change of the processes that compute: it costs next to nothing however short
// iterations are. Pure: times come in. Not thread-safe: the caller holds a lock.
#pragma once

#include <optional>

#include "event/event.hpp"
#include "runtime/phases.hpp"

namespace hocket::runtime {

class IterationMeter {
 public:
  static constexpr Duration usual_least = std::chrono::seconds{1};

  explicit IterationMeter(Duration least = usual_least) : least_(least) {}

  // A control point. Gives the report that is due.
  std::optional<event::Iterations> control_point(const Progress& progress, Time now, const Sums& sums);

 private:
  struct Point {
    Progress progress;
    Time time;
    Sums sums;
  };
  Duration least_;
  std::optional<Point> from_;
};

}  // namespace hocket::runtime
