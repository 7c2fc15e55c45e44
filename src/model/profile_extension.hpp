// What a run adds to the profile that an earlier run left: its times at sizes that the profile lacks.
//
// The profile may be of another input or machine, and points that do not fit together would look like a speedup. So
// the times of this run are brought to the profile's measure, by the ratio of both at a size that both have. Where
// there is no such size, nobody knows how the two compare, and there is nothing to remember.
//
// A size that differs by less than a tenth from one of the profile's is no further size.
//
// Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/speedup_curve.hpp"

namespace hocket::model {

class ProfileExtension {
 public:
  // A point of the profile.
  void told(const CurvePoint& point) { (void)profile_.add(point); }
  // All that this run has shown at one size; takes the place of what it showed there before. Costs the number of points
  // of the profile, and nothing where there is none.
  void shows(const CurvePoint& point);

  // In the profile's measure, by processes.
  std::vector<CurvePoint> points() const;

 private:
  struct Ratio {  // of this run's times to the profile's
    double iteration = 1;
    double io = 1;
  };

  SpeedupCurve profile_;
  std::map<std::int64_t, CurvePoint> shown_;  // sizes that the profile lacks, as they were
  std::optional<Ratio> ratio_;                // at the latest size that both have
};

}  // namespace hocket::model
