#include "model/speedup_curve.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "base/decimal.hpp"
#include "model/measures.hpp"

namespace hocket::model {
namespace {

constexpr double error_of_doubling = 0.05;  // relative error of interpolation, per doubling away from a measured size
constexpr double error_of_law = 0.01;       // relative error of the law itself: no program follows it better
constexpr std::size_t points_of_law = 4;    // the largest sizes: smaller ones say little of larger ones
constexpr double shortest_s = 1e-9;         // of an iteration: the resolution of Time

// Returns the slope between two secants (Fritsch and Butland), which meets Fritsch and Carlson's condition. It is 0
// at a turning point, otherwise the harmonic mean, weighted by the lengths of the intervals.
double slope_between(double length_before, double secant_before, double length_after, double secant_after) {
  if (secant_before * secant_after <= 0) return 0;
  const double weight_before = 2 * length_after + length_before;
  const double weight_after = length_after + 2 * length_before;
  return (weight_before + weight_after) / (weight_before / secant_before + weight_after / secant_after);
}

struct SampleMoments {
  double mean = 0;
  double spread = 0;
};

// Returns the moments of two sets of samples together.
SampleMoments together(SampleMoments a, double samples_a, SampleMoments b, double samples_b) {
  const double samples = samples_a + samples_b;
  const double mean = (a.mean * samples_a + b.mean * samples_b) / samples;
  const auto square = [mean](SampleMoments m) { return m.spread * m.spread + (m.mean - mean) * (m.mean - mean); };
  return {mean, std::sqrt((square(a) * samples_a + square(b) * samples_b) / samples)};
}

// These types select one of the times of a point.
struct CpuField {
  bool apart;
  double time(const CurvePoint& p) const { return apart ? p.iteration_s - p.comm_s : p.iteration_s; }
  static double spread(const CurvePoint& p) { return p.iteration_spread_s; }
  template <class Measured>
  static auto& knot(Measured& m) {
    return m.cpu;
  }
};
struct CommField {
  bool apart;
  double time(const CurvePoint& p) const { return apart ? p.comm_s : 0; }
  static double spread(const CurvePoint&) { return 0; }  // included in that of the iteration
  template <class Measured>
  static auto& knot(Measured& m) {
    return m.comm;
  }
};
struct IoField {
  static double time(const CurvePoint& p) { return p.io_s; }
  static double spread(const CurvePoint& p) { return p.io_spread_s; }
  template <class Measured>
  static auto& knot(Measured& m) {
    return m.io;
  }
};

template <class Measured, class Field>
void fit_slopes(const std::vector<CurvePoint>& points, std::vector<Measured>& fitted, const Field& field) {
  const auto length = [&](std::size_t i) { return fitted[i + 1].processes - fitted[i].processes; };
  // A time of 0 has no logarithm. The curve is flat beside it, and such an interval is interpolated linearly.
  const auto secant = [&](std::size_t i) {
    if (field.time(points[i]) <= 0 || field.time(points[i + 1]) <= 0) return 0.0;
    return (field.knot(fitted[i + 1]).time - field.knot(fitted[i]).time) / length(i);
  };
  const std::size_t last = points.size() - 1;
  for (std::size_t i = 0; i <= last; ++i) field.knot(fitted[i]).time = std::log(field.time(points[i]));
  for (std::size_t i = 0; i <= last; ++i) {
    double& slope = field.knot(fitted[i]).slope;
    if (last == 0) {
      slope = 0;
    } else if (i == 0 || i == last) {
      slope = secant(i == 0 ? 0 : last - 1);
    } else {
      slope = slope_between(length(i - 1), secant(i - 1), length(i), secant(i));
    }
  }
}

// Returns the value at `x` of the cubic through (0, a) and (length, b).
template <class Knot>
double cubic(const Knot& a, const Knot& b, double length, double x) {
  const double t = x / length;
  const double rest = 1 - t;
  return a.time * (1 + 2 * t) * rest * rest + b.time * t * t * (3 - 2 * t) +
         length * t * rest * (a.slope * rest - b.slope * t);
}

}  // namespace

std::optional<Error> SpeedupCurve::refuse(const CurvePoint& point) const {
  const auto wrong = [&point](const std::string& what, const std::string& value, const std::string& wanted) {
    return Error{"speedup curve at " + std::to_string(point.processes) + " processes: " + what + " = " + value +
                 ": must be " + wanted};
  };
  if (point.processes < 1 || point.processes > most_processes) {
    return wrong("processes", std::to_string(point.processes), "from 1 to " + std::to_string(most_processes));
  }
  if (!(point.iteration_s >= shortest_s && point.iteration_s <= longest_s)) {
    return wrong("iteration_s", significant(point.iteration_s), "from 1e-9 to 1e9 s");
  }
  const std::pair<const char*, double> others[] = {
      {"iteration_spread_s", point.iteration_spread_s}, {"io_s", point.io_s}, {"io_spread_s", point.io_spread_s}};
  for (const auto& [what, value] : others) {
    if (!(value >= 0 && value <= longest_s)) return wrong(what, significant(value), "from 0 to 1e9 s");
  }
  if (point.comm_s != -1 && !(point.comm_s >= 0 && point.comm_s <= point.iteration_s)) {
    return wrong("comm_s", significant(point.comm_s), "a part of iteration_s, or -1 if it is not known");
  }
  if (point.samples < 1) return wrong("samples", std::to_string(point.samples), "at least 1");
  const bool fresh = std::none_of(points_.begin(), points_.end(),
                                  [&](const CurvePoint& known) { return known.processes == point.processes; });
  if (fresh && points_.size() == most_points) {
    return Error{"speedup curve at " + std::to_string(point.processes) + " processes: there are " +
                 std::to_string(most_points) + " sizes already, which is the most: leave some out"};
  }
  return std::nullopt;
}

void SpeedupCurve::insert(const CurvePoint& point) {
  const auto place = std::lower_bound(points_.begin(), points_.end(), point.processes,
                                      [](const CurvePoint& p, std::int64_t size) { return p.processes < size; });
  if (place != points_.end() && place->processes == point.processes) {
    *place = point;
  } else {
    points_.insert(place, point);
  }
  fit();
}

Status SpeedupCurve::add(const CurvePoint& point) {
  if (const auto error = refuse(point)) return *error;
  const auto known =
      std::find_if(points_.begin(), points_.end(), [&](const CurvePoint& p) { return p.processes == point.processes; });
  CurvePoint mean = point;
  if (known != points_.end()) {
    const auto before = static_cast<double>(known->samples);
    const auto now = static_cast<double>(point.samples);
    const SampleMoments iteration = together({known->iteration_s, known->iteration_spread_s}, before,
                                             {point.iteration_s, point.iteration_spread_s}, now);
    const SampleMoments io = together({known->io_s, known->io_spread_s}, before, {point.io_s, point.io_spread_s}, now);
    const bool has_comm = known->comm_s >= 0 && point.comm_s >= 0;
    const double comm_s = has_comm ? (known->comm_s * before + point.comm_s * now) / (before + now) : -1;
    mean = {point.processes, iteration.mean, iteration.spread, io.mean, io.spread, known->samples, comm_s};
    mean.comm_s = std::min(mean.comm_s, mean.iteration_s);  // guards against rounding
    if (__builtin_add_overflow(mean.samples, point.samples, &mean.samples)) mean.samples = INT64_MAX;
  }
  insert(mean);
  return success();
}

Status SpeedupCurve::replace(const CurvePoint& point) {
  if (const auto error = refuse(point)) return *error;
  insert(point);
  return success();
}

void SpeedupCurve::fit() {
  fitted_.resize(points_.size());
  for (std::size_t i = 0; i < points_.size(); ++i) {
    fitted_[i].processes = std::log(static_cast<double>(points_[i].processes));
  }
  apart_ = std::all_of(points_.begin(), points_.end(), [](const CurvePoint& p) { return p.comm_s >= 0; });
  fit_slopes(points_, fitted_, CpuField{apart_});
  fit_slopes(points_, fitted_, CommField{apart_});
  fit_slopes(points_, fitted_, IoField{});
  if (beyond_ == Beyond::law) fit_law();
}

double SpeedupCurve::Law::variance_at(double processes) const {
  return serial_variance + (2 * covariance + parallel_variance / processes) / processes;
}

// Fits the law to computing, by least squares weighted by how well each point is known. Neither part may be negative.
void SpeedupCurve::fit_law() {
  law_.reset();
  const std::size_t count = std::min(points_.size(), points_of_law);
  if (count < 2) return;
  const CpuField cpu{apart_};
  double weights = 0;
  double x = 0;
  double t = 0;
  double xx = 0;
  double xt = 0;
  for (auto point = points_.end() - static_cast<std::ptrdiff_t>(count); point != points_.end(); ++point) {
    const double at = 1 / static_cast<double>(point->processes);
    const double spread = point->iteration_spread_s / std::sqrt(static_cast<double>(point->samples));
    const double error = std::hypot(spread, error_of_law * point->iteration_s);
    const double weight = 1 / (error * error);
    weights += weight;
    x += weight * at;
    t += weight * cpu.time(*point);
    xx += weight * at * at;
    xt += weight * at * cpu.time(*point);
  }
  const double determinant = weights * xx - x * x;
  if (!(determinant > 0)) return;
  Law law;
  law.parallel_s = (weights * xt - x * t) / determinant;
  law.serial_s = (t - law.parallel_s * x) / weights;
  if (law.serial_s < 0) law = {0, xt / xx, 0, 0, 0};
  if (law.parallel_s < 0) law = {t / weights, 0, 0, 0, 0};
  law.serial_variance = xx / determinant;
  law.parallel_variance = weights / determinant;
  law.covariance = -x / determinant;
  law_ = law;
}

// Returns computing beyond the largest measured size: the measurement there, times the ratio according to the law.
Estimate SpeedupCurve::cpu_beyond(std::int64_t processes) const {
  const CurvePoint& last = points_.back();
  const double last_s = CpuField{apart_}.time(last);
  const double uncertain_s = coverage * last.iteration_spread_s;
  // The uncertainty reaches down to the time of an even division of the work.
  const auto flat = [&](double time_s, double more_s, std::int64_t known) {
    const double unknown = 1 - static_cast<double>(known) / static_cast<double>(processes);
    return Estimate{time_s, uncertain_s + more_s + unknown * time_s};
  };
  const double law_s = law_ ? law_->at(static_cast<double>(last.processes)) : 0;
  if (!(law_s > 0)) return flat(last_s, 0, last.processes);
  const std::int64_t reached = std::min(processes, reach * last.processes);
  const auto size = static_cast<double>(reached);
  const double more_s = coverage * std::sqrt(std::max(0.0, law_->variance_at(size)));
  return flat(last_s * law_->at(size) / law_s, more_s, reached);
}

// Returns communication beyond the largest measured size. It rises as between the two largest sizes, in the
// logarithms of both. The uncertainty reaches down to no rise at all.
Estimate SpeedupCurve::comm_beyond(std::int64_t processes) const {
  const CommField comm{apart_};
  const double last_s = comm.time(points_.back());
  const double slope = std::max(0.0, fitted_.back().comm.slope);
  const std::int64_t reached = std::min(processes, reach * measured_up_to());
  const double more = std::log(static_cast<double>(reached) / static_cast<double>(measured_up_to()));
  const double time_s = last_s > 0 ? last_s * std::exp(slope * more) : last_s;
  return {time_s, time_s - last_s};
}

template <class Field>
Estimate SpeedupCurve::estimate(std::int64_t processes, const Field& field) const {
  assert(!points_.empty() && processes > 0);
  const auto upper = std::lower_bound(points_.begin(), points_.end(), processes,
                                      [](const CurvePoint& p, std::int64_t size) { return p.processes < size; });
  const auto uncertainty = [&](const CurvePoint& point) { return coverage * field.spread(point); };
  const auto asked = static_cast<double>(processes);
  if (upper == points_.end()) {
    // The uncertainty reaches down to the time of an even division of the work.
    const CurvePoint& last = points_.back();
    const double unknown = 1 - static_cast<double>(last.processes) / asked;
    return {field.time(last), uncertainty(last) + unknown * field.time(last)};
  }
  if (upper->processes == processes) return {field.time(*upper), uncertainty(*upper)};
  if (upper == points_.begin()) {
    const double more = static_cast<double>(upper->processes) / asked;  // at best as fast as measured
    return {field.time(*upper) * more, uncertainty(*upper) * more + (more - 1) * field.time(*upper)};
  }

  const CurvePoint& a = *(upper - 1);
  const CurvePoint& b = *upper;
  const auto& fitted_a = fitted_[static_cast<std::size_t>(upper - 1 - points_.begin())];
  const auto& fitted_b = fitted_[static_cast<std::size_t>(upper - points_.begin())];
  const double length = fitted_b.processes - fitted_a.processes;
  const double x = std::log(asked) - fitted_a.processes;
  double value = 0;
  if (field.time(a) > 0 && field.time(b) > 0) {
    value = std::exp(cubic(field.knot(fitted_a), field.knot(fitted_b), length, x));
  } else {
    value = field.time(a) + (field.time(b) - field.time(a)) * x / length;
  }
  const auto [least, most] = std::minmax({field.time(a), field.time(b)});
  value = std::clamp(value, least, most);  // rounding must not leave the measured range
  const double doublings = std::max(0.0, std::min(x, length - x)) / std::log(2.0);
  return {value, std::max(uncertainty(a), uncertainty(b)) + error_of_doubling * doublings * value};
}

Estimate SpeedupCurve::cpu(std::int64_t processes) const {
  return is_beyond(processes) ? cpu_beyond(processes) : estimate(processes, CpuField{apart_});
}

Estimate SpeedupCurve::comm(std::int64_t processes) const {
  if (!apart_) return {};
  return is_beyond(processes) ? comm_beyond(processes) : estimate(processes, CommField{apart_});
}

Estimate SpeedupCurve::iteration(std::int64_t processes) const {
  const Estimate computing = cpu(processes), communication = comm(processes);
  return {computing.value + communication.value, computing.uncertainty + communication.uncertainty};
}

Estimate SpeedupCurve::io(std::int64_t processes) const { return estimate(processes, IoField{}); }

double SpeedupCurve::speedup(std::int64_t from, std::int64_t to) const {
  return iteration(from).value / iteration(to).value;
}

std::optional<std::int64_t> SpeedupCurve::processes_for(double speedup, std::int64_t from, std::int64_t most) const {
  const double needed_s = iteration(from).value / speedup;
  std::int64_t first = from + 1;
  const auto search = [&](std::int64_t last) {
    const auto found = fewest(needed_s, first, last);
    first = std::max(first, last + 1);
    return found;
  };
  for (const CurvePoint& point : points_) {
    if (const auto found = search(std::min(point.processes, most))) return found;
  }
  // Beyond the largest measured size, times change as far as the law reaches, then stay.
  if (const auto found = search(std::min(reach * measured_up_to(), most))) return found;
  return search(most);
}

// Returns the fewest processes from `first` to `last` with at most `needed_s`. Computing is monotone there, and so is
// communication. Their sum need not be, but the ends of both bound it from below.
std::optional<std::int64_t> SpeedupCurve::fewest(double needed_s, std::int64_t first, std::int64_t last) const {
  if (first > last) return std::nullopt;
  const double cpu_s = cpu(first).value, comm_s = comm(first).value;
  if (cpu_s + comm_s <= needed_s) return first;
  if (std::min(cpu_s, cpu(last).value) + std::min(comm_s, comm(last).value) > needed_s) return std::nullopt;
  const std::int64_t middle = first + (last - first) / 2;
  if (const auto found = fewest(needed_s, first + 1, middle)) return found;
  return fewest(needed_s, std::max(first, middle) + 1, last);
}

}  // namespace hocket::model
