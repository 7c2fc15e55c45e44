// A ProfileExtension collects what a run adds to the profile of an earlier run: times at sizes that the profile
// lacks. The coordinator hands these points to the profile store when the application leaves.
//
// The profile may belong to another input or machine, and points that do not fit together would look like a speedup.
// So the times of this run are scaled to the profile, by the ratio of both at a size that both have. If there is no
// such size, the two cannot be compared, and nothing is stored.
//
// A size that differs by less than a tenth from one of the profile counts as the same size.
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
  // Adds a point of the profile.
  void told(const CurvePoint& point) { (void)profile_.add(point); }
  // Takes all that this run has shown at one size, in place of earlier results at that size. The cost is linear in
  // the points of the profile; without a profile the call does nothing.
  void shows(const CurvePoint& point);

  // Returns the new points scaled to the profile, by number of processes; none without a common size.
  std::vector<CurvePoint> points() const;

 private:
  struct Ratio {  // this run's times / the profile's
    double iteration = 1;
    double io = 1;
  };

  SpeedupCurve profile_;
  std::map<std::int64_t, CurvePoint> shown_;  // sizes that the profile lacks, not scaled
  std::optional<Ratio> ratio_;                // at the latest common size
};

}  // namespace hocket::model
