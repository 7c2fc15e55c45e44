// Times of an application by its number of processes: measured at some, interpolated at the others (CLARISSE+FlexMPI,
// section 4.1).
//
// Between two measured sizes a time is interpolated in the logarithms of both, by a cubic that is monotone where the
// measured points are (Fritsch and Carlson). Computing and communication (T_cpu and T_comm of Eq. 1) are interpolated
// each for itself where both are known at all sizes, and an iteration takes their sum: computing falls with more
// processes while communication may rise. Where they are not known apart, all of it counts as computing.
//
// Beyond the largest measured size, `Beyond` says what is known. `flat`: a time stays what it is there, as a scenario
// of the simulator says it. `law`: computing goes on by Amdahl's law, T = a + b/p, fitted to the largest measured
// sizes, and communication as it rose between the two largest, up to twice the largest; further away they stay flat, so
// that an application grows step by step, and each step is measured. Communication that fell stays flat, and so does
// I/O time in either case: it is the storage that limits it. Below the smallest size the work is taken as divided
// evenly, which is the most cautious guess about shrinking. The uncertainty of an estimate grows with its distance from
// the measured sizes.
//
// Pure, not thread-safe. Costs of a question: the logarithm of the number of points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"

namespace hocket::model {

constexpr std::int64_t most_processes = std::int64_t{1} << 32;  // keeps sums of what clients claim within int64

struct CurvePoint {
  std::int64_t processes = 0;
  double iteration_s = 0;         // T_cpu + T_comm of one iteration, mean
  double iteration_spread_s = 0;  // standard deviation
  double io_s = 0;                // T_io of one I/O phase, undisturbed; 0: does none
  double io_spread_s = 0;
  std::int64_t samples = 1;
  double comm_s = -1;  // the part of iteration_s that is T_comm, mean; -1: not known
};

struct Estimate {
  double value = 0;        // s
  double uncertainty = 0;  // s, plus or minus: two standard deviations
};

enum class Beyond { flat, law };

class SpeedupCurve {
 public:
  static constexpr std::size_t most_points = 256;
  static constexpr std::int64_t reach = 2;  // of the law, in multiples of the largest measured size

  SpeedupCurve() = default;
  explicit SpeedupCurve(Beyond beyond) : beyond_(beyond) {}

  // A further measurement; at a size that has one already, the mean of both by their samples. Refused, with the
  // reason, where a value is not finite, not positive where it must be, or the curve is full.
  Status add(const CurvePoint& point);
  // The same, but at a size that has a measurement already, the new one takes its place.
  Status replace(const CurvePoint& point);

  const std::vector<CurvePoint>& points() const { return points_; }  // by processes
  bool empty() const { return points_.empty(); }

  // Precondition of all: not empty, processes > 0.
  Estimate iteration(std::int64_t processes) const;
  Estimate cpu(std::int64_t processes) const;   // of an iteration; all of it where communication is not known apart
  Estimate comm(std::int64_t processes) const;  // of an iteration; 0 where it is not known apart
  Estimate io(std::int64_t processes) const;
  // iteration(from) / iteration(to).
  double speedup(std::int64_t from, std::int64_t to) const;
  // The fewest processes, more than `from` and at most `most`, with that speedup against `from`; none: not reached.
  // Costs: the number of points, times the logarithm of the distance between two.
  std::optional<std::int64_t> processes_for(double speedup, std::int64_t from, std::int64_t most) const;
  // The largest size that was measured.
  std::int64_t measured_up_to() const { return points_.empty() ? 0 : points_.back().processes; }

 private:
  // One of the times at a measured size, in logarithms.
  struct Knot {
    double time = 0;   // of the seconds; not used where they are 0
    double slope = 0;  // of the cubic: d log(time) / d log(processes)
  };
  struct Measured {
    double processes = 0;  // logarithm
    Knot cpu;
    Knot comm;
    Knot io;
  };
  std::optional<Error> refuse(const CurvePoint& point) const;
  void insert(const CurvePoint& point);
  void fit();
  // T = a + b/p, and how well that is known.
  struct Law {
    double serial_s = 0;    // a
    double parallel_s = 0;  // b
    // Variances and covariance of the two; their sum at 1/p is the variance of a time.
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
  std::optional<Law> law_;          // where there are points enough for it
  std::vector<CurvePoint> points_;  // by processes, each size once
  std::vector<Measured> fitted_;    // one each
};

}  // namespace hocket::model
