// A SpeedupCurve gives an application's times by its number of processes: measured at some sizes, interpolated at
// others (CLARISSE+FlexMPI, section 4.1). Policies and predictions read it.
//
// Between two measured sizes, a time is interpolated in the logarithms of both. The cubic is monotone where the
// measured points are (Fritsch and Carlson). Computing and communication (T_cpu and T_comm of Eq. 1) are interpolated
// separately if both are known at all sizes. An iteration takes their sum: computing falls with more processes, while
// communication may rise. If they are not known separately, all of the time counts as computing.
//
// Beyond the largest measured size, `Beyond` selects the extrapolation. With `flat`, times stay as they are there, as
// in a scenario of the simulator. With `law`, computing follows Amdahl's law, T = a + b/p, fitted to the largest
// measured sizes. Communication rises as it did between the two largest. Both apply up to twice the largest size;
// further away the times stay flat, so that an application grows step by step, and each step is measured.
// Communication that fell stays flat. I/O time stays flat in either case, because the storage limits it.
//
// Below the smallest size, the work is assumed to be divided evenly, the most cautious guess about shrinking. The
// uncertainty of an estimate grows with its distance from the measured sizes.
//
// Pure, not thread-safe. The cost of an estimate is logarithmic in the number of points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"

namespace hocket::model {

constexpr std::int64_t most_processes = std::int64_t{1} << 32;  // keeps sums of what clients report within int64

// The times measured with one number of processes, in seconds.
struct CurvePoint {
  std::int64_t processes = 0;
  double iteration_s = 0;         // T_cpu + T_comm of one iteration, mean
  double iteration_spread_s = 0;  // standard deviation
  double io_s = 0;                // T_io of one I/O period, undisturbed; 0: does none
  double io_spread_s = 0;
  std::int64_t samples = 1;
  double comm_s = -1;  // T_comm, a part of iteration_s, mean; -1: unknown
};

// A time in seconds and its uncertainty.
struct Estimate {
  double value = 0;
  double uncertainty = 0;  // plus or minus: two standard deviations
};

// The extrapolation beyond the largest measured size.
enum class Beyond { flat, law };

// The curve of one application, of at most 256 measured sizes.
class SpeedupCurve {
 public:
  static constexpr std::size_t most_points = 256;
  static constexpr std::int64_t reach = 2;  // of the law, in multiples of the largest measured size

  SpeedupCurve() = default;
  explicit SpeedupCurve(Beyond beyond) : beyond_(beyond) {}

  // Adds a measurement. At a size that has one already, the two are averaged by their samples. Returns an error with
  // the reason if the curve is full, or if a value is not finite, too large, or not positive where it must be.
  Status add(const CurvePoint& point);
  // Adds a measurement likewise, but it replaces one at the same size.
  Status replace(const CurvePoint& point);

  const std::vector<CurvePoint>& points() const { return points_; }  // by processes
  bool empty() const { return points_.empty(); }

  // All estimates require a curve that is not empty, and processes > 0.
  Estimate iteration(std::int64_t processes) const;
  Estimate cpu(std::int64_t processes) const;   // of an iteration; all of it if communication is unknown
  Estimate comm(std::int64_t processes) const;  // of an iteration; 0 if unknown
  Estimate io(std::int64_t processes) const;
  // Returns iteration(from) / iteration(to).
  double speedup(std::int64_t from, std::int64_t to) const;
  // Returns the fewest processes, above `from` and at most `most`, with at least that speedup against `from`; nothing
  // if it is not reached. The search bisects each interval between points, and skips ranges that cannot contain a
  // result.
  std::optional<std::int64_t> processes_for(double speedup, std::int64_t from, std::int64_t most) const;
  // Returns the largest measured size; 0 if there is none.
  std::int64_t measured_up_to() const { return points_.empty() ? 0 : points_.back().processes; }

 private:
  // One of the times at a measured size, in logarithms.
  struct Knot {
    double time = 0;   // of the seconds; unused if they are 0
    double slope = 0;  // of the cubic: d log(time) / d log(processes)
  };
  // The logarithms of one point of the curve.
  struct Measured {
    double processes = 0;  // logarithm
    Knot cpu;
    Knot comm;
    Knot io;
  };
  std::optional<Error> refuse(const CurvePoint& point) const;
  void insert(const CurvePoint& point);
  void fit();
  // Amdahl's law, T = a + b/p, and how well its parameters are known.
  struct Law {
    double serial_s = 0;    // a
    double parallel_s = 0;  // b
    // Variances and covariance of both parts. Evaluated at 1/p, they give the variance of a time.
    double serial_variance = 0;
    double parallel_variance = 0;
    double covariance = 0;
    double at(double processes) const { return serial_s + parallel_s / processes; }
    double variance_at(double processes) const;
  };
  template <class Field>
  Estimate estimate(std::int64_t processes, const Field& field) const;
  void fit_law();
  bool is_beyond(std::int64_t processes) const { return beyond_ == Beyond::law && processes > measured_up_to(); }
  Estimate cpu_beyond(std::int64_t processes) const;
  Estimate comm_beyond(std::int64_t processes) const;
  std::optional<std::int64_t> fewest(double needed_s, std::int64_t first, std::int64_t last) const;

  Beyond beyond_ = Beyond::flat;
  bool apart_ = false;              // communication is known at all sizes
  std::optional<Law> law_;          // if there are enough points for it
  std::vector<CurvePoint> points_;  // by processes, each size once
  std::vector<Measured> fitted_;    // one for each point
};

}  // namespace hocket::model
