#include "coordinator/cores/measuring.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "coordinator/cores/steering.hpp"

namespace hocket::coordinator {
namespace {

constexpr std::string_view policy_name = "probe";
// I/O periods at an application's own size before it is measured at others. The first one contains the application's
// start.
constexpr std::int64_t phases_before = 2;
// Reports of iterations, one each second, that count as one I/O period.
constexpr std::int64_t reports_of_a_size = 3;
// Periods measured at one size: the least number, and the number that is enough at any spread.
constexpr std::int64_t least_samples = 2;
constexpr std::int64_t most_samples = 4;
// Standard error that is small enough, as a fraction of the mean.
constexpr double small_error = 0.005;

// Returns the next size to measure above `processes`: 1.5 or 2 times the application's own size, or 0 if both are done.
std::int64_t next_size(std::int64_t own, std::int64_t processes) {
  const std::array sizes{own + (own + 1) / 2, 2 * own};
  const auto next = std::find_if(sizes.begin(), sizes.end(), [&](std::int64_t size) { return size > processes; });
  return next == sizes.end() ? 0 : *next;
}

}  // namespace

std::optional<model::CurvePoint> Measuring::sample(const model::Application& application, const event::IoPhase& phase) {
  const Last now{phase.iteration, application.computing_processes(), application.malleability.reconfigurations,
                 application.history.phases()};
  Last& last = last_[application.id];
  const Last before = last;
  if (now.phases == before.phases) return std::nullopt;  // another member's report of the same phase
  last = now;
  const bool whole = before.iteration >= 0 && now.iteration > before.iteration && now.processes == before.processes &&
                     now.reconfigurations == before.reconfigurations && now.phases == before.phases + 1 &&
                     (phase.processes == 0 || phase.processes == now.processes);
  // The model's record is used, because it has corrected impossible values in the report.
  const model::PhaseRecord* record = application.history.last();
  if (!whole || record == nullptr) return std::nullopt;
  const auto iterations = static_cast<double>(now.iteration) - static_cast<double>(before.iteration);
  const double iteration_s = to_s(record->cpu + record->comm) / iterations;
  if (!(iteration_s > 0)) return std::nullopt;
  const double comm_s = std::min(to_s(record->comm) / iterations, iteration_s);
  return model::CurvePoint{now.processes, iteration_s, 0, to_s(application.history.io_of_last_cycle()), 0, 1, comm_s};
}

bool Measuring::is_due(const model::Application& application) {
  return application.malleability.malleable && application.curve.measured_up_to() <= application.computing_processes();
}

bool Measuring::wants(const model::Application& application) {
  return is_due(application) && !is_known(application.curve, application.computing_processes());
}

bool Measuring::is_known(const model::SpeedupCurve& curve, std::int64_t processes) {
  const auto& points = curve.points();
  const auto at = std::find_if(points.begin(), points.end(), [&](const auto& p) { return p.processes == processes; });
  return at != points.end() && is_known(*at);
}

bool Measuring::is_known(const model::CurvePoint& point) {
  if (point.samples < least_samples) return false;
  const double error_s = point.iteration_spread_s / std::sqrt(static_cast<double>(point.samples));
  return point.samples >= most_samples || error_s <= small_error * point.iteration_s;
}

// ---- resizing for it ---------------------------------------------------------------------------------------------

// A measurement starts only if the application is idle: no resize, course or refusal. Its own size must be measured,
// and the cores for the next size must be free.
void Steering::start_measuring(const Moment& moment, model::Application& application) {
  if (!resizing_.gives_out()) return;
  const bool idle = application.malleability.resizing_to == 0 && application.malleability.commanding &&
                    !courses_.contains(application.id) && !set_by_tool_.contains(application.id) &&
                    !refused_.contains(application.id);
  if (!idle || !Measuring::is_due(application) || application.curve.empty()) return;
  const std::int64_t own_reports = application.iterations.at_size(application.computing_processes()).reports;
  const bool shown = application.lives_by_iterations() && own_reports >= reports_of_a_size;
  if (application.history.phases() < phases_before && !shown) return;
  const std::int64_t own = application.computing_processes();
  const std::int64_t most = std::min(own + cores_.free_for(application.id), settings_.core.limit_of(application));
  if (next_size(own, own) > most) return;
  Course course;
  course.passing = {0, policy_name, own, own, 0};
  course.passing.nodes = application.runs_on();
  if (!ask_to_measure(moment, application, course, next_size(own, own))) return;
  show_expansion(application, courses_[application.id] = course);
}

// Enough reports of iterations at the measured size replace an I/O period.
void Steering::take_iterations(const Moment& moment, model::Application& application, Course& course) {
  if (course.state != CourseState::measuring) return;
  if (application.computing_processes() != course.passing.processes) return;
  const model::IterationTimes::MeasuredTimes shown = application.iterations.at_size(course.passing.processes);
  if (shown.reports < reports_of_a_size) return;
  if (!application.curve_is_seen) {  // a curve built from this run has the point already
    (void)application.curve.add({shown.processes, shown.iteration_s, shown.spread_s,
                                 application.curve.io(shown.processes).value, 0, shown.reports, shown.comm_s});
  }
  go_on_measuring(moment, application, course);
}

// The present size is measured: the next size follows, or the application returns. It also returns if a new application
// lacks cores.
void Steering::go_on_measuring(const Moment& moment, model::Application& application, Course& course) {
  const std::int64_t own = course.passing.original;
  const std::int64_t next = next_size(own, course.passing.processes);
  const std::int64_t most =
      std::min(cores_.of(application.id) + cores_.free_for(application.id), settings_.core.limit_of(application));
  const bool fits = next != 0 && next <= most && resizing_.gives_out();
  if (fits && cores_.taken_beyond() == 0 && ask_to_measure(moment, application, course, next)) {
    return show_expansion(application, course);
  }
  course.goal = own;
  apply(moment, application, course, CourseInput::measured);
}

bool Steering::ask_to_measure(const Moment& moment, model::Application& application, Course& course,
                              std::int64_t processes) {
  if (stops_too_long(moment, application, processes, true)) return false;
  const auto request = request_size(moment, application, processes, 0);
  if (!request) return false;
  course.passing.decision =
      tell(moment, application, policy_name, "expand", processes, event::ProbeStep{course.passing.original});
  course.passing.processes = processes;
  course.state = course_step(course.state, CourseInput::probe).next;
  course.request = request.id;
  course.goal = processes;
  course.decided = moment.now;
  course.phases = application.history.phases();
  bound(application.id, course, moment.now + resizing_.patience(application));
  return true;
}

}  // namespace hocket::coordinator
