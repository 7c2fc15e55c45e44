// Measures speedup curves on line (CLARISSE+FlexMPI, section 4.1, the on-line predictor). It finds the I/O periods that
// an application spent wholly at one size, and their times.
//
// Measuring is a part of Steering, which resizes the application for it; pure, not thread-safe.
#pragma once

#include <map>
#include <optional>

#include "event/event.hpp"
#include "model/application.hpp"

namespace hocket::coordinator {

// Remembers the last I/O phase of each application, to compare the next one with it.
class Measuring {
 public:
  // Returns the last I/O period, from the previous phase to this one, as a point of the curve. Returns nothing if the
  // size changed within it, or if another member has reported the phase already.
  std::optional<model::CurvePoint> sample(const model::Application& application, const event::IoPhase& phase);
  void forget(AppId app) { last_.erase(app); }

  // `is_due`: true if a malleable application's curve has no point above its present size. `wants`: true if its time at
  // the present size is not known well enough either.
  static bool is_due(const model::Application& application);
  static bool wants(const model::Application& application);
  // True if the mean time at that size is known well enough. It takes several periods: until the standard error is
  // small, or until further periods would help little.
  static bool is_known(const model::SpeedupCurve& curve, std::int64_t processes);
  static bool is_known(const model::CurvePoint& point);

 private:
  // State of an application at its last I/O phase.
  struct Last {
    std::int64_t iteration = -1;
    std::int64_t processes = 0;
    std::int64_t reconfigurations = 0;
    std::int64_t phases = 0;
  };
  std::map<AppId, Last> last_;
};

}  // namespace hocket::coordinator
