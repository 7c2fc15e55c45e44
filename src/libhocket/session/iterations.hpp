// Measures how long the iterations of a malleable program take, from control point to control point.
//
// A report covers at least `least`, so it costs next to nothing however short the iterations are. It never covers a
// change of the computing processes. Pure: times are parameters. Not thread-safe: the caller holds a lock.
#pragma once

#include <optional>

#include "event/event.hpp"
#include "session/phases.hpp"

namespace hocket::runtime {

class IterationMeter {
 public:
  static constexpr Duration usual_least = std::chrono::seconds{1};

  explicit IterationMeter(Duration least = usual_least) : least_(least) {}

  // Records a control point at `now`, and returns the report that is due, if any. `sums` are the process's at `now`.
  std::optional<event::Iterations> control_point(const IterationProgress& progress, Time now, const TimeSums& sums);

 private:
  struct Point {
    IterationProgress progress;
    Time time;
    TimeSums sums;
  };
  Duration least_;
  std::optional<Point> from_;  // the control point at which the next report begins
};

}  // namespace hocket::runtime
