// On-line measurement of the speedup curve (CLARISSE+FlexMPI, section 4.1, the on-line predictor): which I/O periods
// were wholly at one size, and what they took.
//
// A part of Steering, which resizes the application for it; pure and not thread-safe as it is.
#pragma once

#include <map>
#include <optional>

#include "event/event.hpp"
#include "model/application.hpp"

namespace hocket::coordinator {

class Measuring {
 public:
  // The last I/O period at one size, if it was wholly at that: from the phase before to this one.
  std::optional<model::CurvePoint> sample(const model::Application& application, const event::IoPhase& phase);
  void forget(AppId app) { last_.erase(app); }

  // Whether nothing is known of the application beyond its size; and whether of that size not enough either.
  static bool is_due(const model::Application& application);
  static bool wants(const model::Application& application);
  // Whether the mean time at that size is known well enough: several periods, until its standard error is small, or so
  // many that more would help little.
  static bool is_known(const model::SpeedupCurve& curve, std::int64_t processes);
  static bool is_known(const model::CurvePoint& point);

 private:
  struct Last {
    std::int64_t iteration = -1;
    std::int64_t processes = 0;
    std::int64_t reconfigurations = 0;
    std::int64_t phases = 0;
  };
  std::map<AppId, Last> last_;
};

}  // namespace hocket::coordinator
