#include "coordinator/steering.hpp"

#include <algorithm>
#include <cmath>

#include "base/saturating.hpp"
#include "coordinator/words.hpp"

namespace hocket::coordinator {
namespace {

using model::Application;

constexpr std::string_view policy_for_measuring = "probe";
// A refused return is requested again at once this often, and from then on after each I/O phase.
constexpr std::int64_t most_refusals = 3;
// Least number of sizes in a curve that is worth storing.
constexpr std::size_t least_remembered = 3;

// Returns the slowdown of applications that overlap, if the access policy lets them overlap unconditionally; else 0.
double together(const Settings& settings, const policy::Combination& policies) {
  return policies.access == &policy::interfere ? settings.access.interference : 0;
}

// Adds a measured point to the curve. A curve that is built from this run already contains the run's own periods.
void take_sample(Application& application, const model::CurvePoint& sample) {
  if (!application.curve_is_seen) (void)application.curve.add(sample);
}

// Returns the points to be stored. For an application without a profile, this is the whole curve. For others, it is the
// sizes that the profile lacks and that are known well.
std::vector<model::CurvePoint> to_remember(const Application& application) {
  std::vector<model::CurvePoint> points =
      application.curve_is_seen ? application.curve.points() : application.extension.points();
  if (application.curve_is_seen) {
    if (points.size() < least_remembered) points.clear();
  } else {
    std::erase_if(points, [](const model::CurvePoint& point) { return !Measuring::is_known(point); });
  }
  return points;
}

}  // namespace

Steering::Steering(const Settings& settings, model::Cluster& cluster, model::Cores& cores, Resizing& resizing,
                   std::int64_t& decisions)
    : settings_(settings),
      cluster_(cluster),
      cores_(cores),
      resizing_(resizing),
      interference_(settings.policy.interference),
      sharing_(settings.policy.sharing),
      together_(together(settings, settings.policy)),
      most_slowdown_(most_slowdown_of(settings, *settings.policy.access)),
      decisions_made_(decisions) {}

// ---- events ------------------------------------------------------------------------------------------------------

void Steering::joined(const Moment& moment, Application& application) {
  follow(application);
  after(moment, application.id);
}

void Steering::profile(const Moment& moment, const event::Profile& profile) {
  Application* application = cluster_.find(profile.app);
  if (application == nullptr) return;
  const model::CurvePoint point{profile.processes, profile.iteration_s, profile.iteration_spread_s,
                                profile.io_s,      profile.io_spread_s, profile.samples,
                                profile.comm_s};
  if (!application->curve.add(point)) return;
  application->extension.told(point);
  application->learn_flop(profile.flop_per_iteration, model::FlopSource::profile);
  after(moment, application->id);
}

void Steering::malleable(const Moment& moment, Application& application, const event::Malleable& said) {
  application.learn_flop(said.flop_per_iteration, model::FlopSource::declared);
  follow(application);
  if (const auto found = courses_.find(application.id); found != courses_.end()) {
    Course& course = found->second;
    if (course.request) {
      // Resizing sends the new commanding member what the one before was asked for.
    } else if (course.stage == Stage::returning) {
      retry_return(moment, application, course);
    } else {
      check_size(moment, application, course);
    }
  }
  after(moment, application.id);
}

void Steering::phase(const Moment& moment, Application& application, const event::IoPhase& phase) {
  if (resizing_.answer_is_lost(moment, application, phase)) follow(application);
  outcomes_.phase(moment, application);
  const auto sample = settings_.probe && (interference_ || sharing_) ? measuring_.sample(application, phase)
                                                                     : std::optional<model::CurvePoint>{};
  const auto found = courses_.find(application.id);
  if (found == courses_.end()) {
    if (sample && Measuring::wants(application)) take_sample(application, *sample);
  } else {
    Course& course = found->second;
    const bool answer_is_lost =
        course.request && course.hurried && phase.processes > 0 && moment.now > course.answer_by;
    if (answer_is_lost) {
      course.request = {};
      resizing_.take_as_answered(application, phase.processes);
      follow(application);
      advance(moment, application, course, phase.processes == course.goal);
    } else if (course.is_passing() && course.passing.policy == policy_for_measuring && course.stage == Stage::there) {
      if (sample && sample->processes == course.passing.processes) {
        take_sample(application, *sample);
        if (Measuring::is_known(application.curve, sample->processes)) {
          go_on_measuring(moment, application, course);
        } else {
          bound(application.id, course, moment.now + resizing_.patience(application));  // one period more
        }
      }
    } else {
      fresh_phase(moment, application, course);
    }
  }
  after(moment, application.id);
  if (settings_.probe && (interference_ || sharing_)) start_measuring(moment, application);
}

// Reports of iterations take the place of I/O phases for applications without I/O or with long I/O periods. Policies
// are asked at the first, second, fourth, eighth … report only, because reports come each second.
void Steering::iterations(const Moment& moment, Application& application) {
  if (!application.lives_by_iterations()) return;
  const bool measures = settings_.probe && (interference_ || sharing_);
  const auto found = courses_.find(application.id);
  if (measures && found != courses_.end()) take_iterations(moment, application, found->second);
  const std::int64_t reports = application.iterations.reports();
  if ((reports & (reports - 1)) == 0) after(moment, application.id);
  if (measures) start_measuring(moment, application);
}

void Steering::ended(const Moment& moment, Application& application, const event::Reconfiguration& record) {
  follow(application);
  const auto found = courses_.find(application.id);
  if (found != courses_.end()) {
    Course& course = found->second;
    if (course.request && course.request == record.request) {
      course.request = {};
      advance(moment, application, course, record.done);
    } else if (!course.request && record.done && course.stage != Stage::returning) {
      check_size(moment, application, course);
    }
  }
  after(moment, application.id);
}

// An operator's resize has precedence. It also ends the policies' claim on the application's earlier changes.
void Steering::resized_by_tool(const Moment& moment, Application& application) {
  if (const auto found = courses_.find(application.id); found != courses_.end()) {
    const Course& course = found->second;
    tell(moment, application, course.top().policy, "cancel", application.malleability.resizing_to,
         quoted(application.name) + " is resized by hand: policies leave it alone until they are chosen anew");
    if (course.request) begun_[application.id] = std::max(course.goal, course.top().processes);
  }
  forget(application.id);
  application.expansion = {};
  set_by_tool_.insert(application.id);
  follow(application);
  reclaim(moment);
}

void Steering::member_left(const Moment& moment, Application& application) {
  follow(application);
  const auto found = courses_.find(application.id);
  if (found != courses_.end() && found->second.request && application.malleability.resizing_to == 0) {
    // The member that was asked is lost. The next commanding member completes the return.
    Course& course = found->second;
    course.request = {};
    if (course.stage == Stage::going) {
      give_up(moment, application, course, "the process that was asked is lost");
    } else {
      course.hurried = true;
    }
  }
  after(moment, application.id);
}

void Steering::leaves(const Moment& moment, const Application& application) {
  for (const model::CurvePoint& point : to_remember(application)) {
    event::Profile measured{application.id, point.processes,   point.iteration_s, point.iteration_spread_s,
                            point.io_s,     point.io_spread_s, point.samples,     application.flop_per_iteration,
                            point.comm_s};
    moment.commands.push_back({{}, measured});
  }
}

void Steering::gone(const Moment& moment, AppId app, const std::string& name) {
  if (const auto found = courses_.find(app); found != courses_.end()) {
    const Layer& layer = found->second.top();
    const std::int64_t extra = cores_.of(app) - layer.original;
    if (extra > 0) {
      Outcomes::cores_back(moment, name, layer.decision, extra, extra,
                           quoted(name) + " ended, and " + cores_text(extra) + " that it was given came back");
    }
  }
  forget(app);
  cores_.release_all(app);
  set_by_tool_.erase(app);
  begun_.erase(app);
  refused_.erase(app);
  told_.erase(app);
  told_once_.erase(app);
  measuring_.forget(app);
  after(moment, {});
}

void Steering::set_policies(const Moment& moment, const policy::Combination& policies) {
  interference_ = policies.interference;
  sharing_ = policies.sharing;
  together_ = together(settings_, policies);
  most_slowdown_ = most_slowdown_of(settings_, *policies.access);
  set_by_tool_.clear();
  told_.clear();
  told_once_.clear();
  refused_.clear();
  for (auto place = courses_.begin(); place != courses_.end();) {
    auto& [id, course] = *place++;  // it may be forgotten
    const std::string_view policy = course.lasting.policy;
    const bool in_force = (interference_ != nullptr && interference_->name == policy) ||
                          (sharing_ != nullptr && sharing_->name == policy);
    course.unwanted = course.lasting.decision != 0 && !in_force;
    end_unwanted(moment, *cluster_.find(id), course);
  }
  after(moment, {});
}

void Steering::tick(const Moment& moment) {
  while (!due_.empty() && due_.begin()->first <= moment.now) {
    const AppId app = due_.begin()->second;
    Course& course = courses_.at(app);
    bound(app, course, {});
    overdue(moment, *cluster_.find(app), course);
  }
  reclaim(moment);
}

std::optional<Time> Steering::deadline() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

void Steering::after(const Moment& moment, AppId subject) {
  reclaim(moment);
  ask_policies(moment, subject);
}

// ---- cores -------------------------------------------------------------------------------------------------------

void Steering::follow(const Application& application) {
  std::int64_t uses = std::max(application.computing_processes(), application.malleability.resizing_to);
  if (const auto begun = begun_.find(application.id); begun != begun_.end()) {
    if (application.malleability.resizing_to == 0) {
      begun_.erase(begun);
    } else {
      uses = std::max(uses, begun->second);
    }
  }
  if (const auto course = courses_.find(application.id); course != courses_.end()) {
    const Course& at = course->second;
    if (at.request) uses = std::max(uses, at.goal);
    if (at.is_passing() && at.stage != Stage::awaited) uses = std::max(uses, at.passing.original);
    // The application may have begun the first request before it received the request to return.
    if (at.request && at.stage == Stage::returning && at.reserved) uses = std::max(uses, at.top().processes);
  }
  const std::int64_t has = cores_.of(application.id);
  if (uses > has) cores_.claim(application.id, uses - has, application.node);
  if (uses < has) cores_.release(application.id, has - uses);
}

// ---- the life of a course ----------------------------------------------------------------------------------------

void Steering::advance(const Moment& moment, Application& application, Course& course, bool done) {
  const bool reached = application.computing_processes() == course.goal;
  if (course.stage == Stage::going && !(done && reached)) {
    refused_[application.id] = {application.history.phases(), moment.now + resizing_.patience(application)};
    return give_up(moment, application, course,
                   done ? "it has another size than it was asked for" : "it did not do it");
  }
  if (course.stage == Stage::going) {
    course.stage = Stage::there;
    follow(application);
    if (!course.is_passing()) {
      bound(application.id, course, {});
      outcomes_.in_force(application);
      return end_unwanted(moment, application, course);
    }
    if (course.passing.policy == policy_for_measuring) {
      return bound(application.id, course, moment.now + resizing_.patience(application));
    }
    if (course.passing.return_at > application.malleability.iteration) {
      course.goal = course.passing.original;
      return go_back(moment, application, course, course.passing.return_at);
    }
    return give_up(moment, application, course,
                   "its resize came too late: it was to be back at iteration " + number(course.passing.return_at));
  }
  if (course.stage != Stage::returning) return;
  course.reserved = false;
  follow(application);
  if (is_back(application, course)) return back(moment, application, course);
  course.hurried = true;  // the planned iteration may be past
  if (++course.refusals <= most_refusals) go_back(moment, application, course, 0);
}

void Steering::give_up(const Moment& moment, Application& application, Course& course, const std::string& why) {
  const Layer& layer = course.top();
  const bool by_itself = course.stage == Stage::there || course.stage == Stage::awaited;
  tell(moment, application, layer.policy, "cancel",
       by_itself && !course.is_passing() ? application.computing_processes() : layer.original,
       "decision " + number(layer.decision) + " about " + quoted(application.name) + " is given up: " + why);
  outcomes_.forget(application.id);
  course.phase_came = true;
  course.hurried = true;
  course.goal = course.is_passing() ? layer.original : course.before;
  const bool own_size = by_itself && !course.is_passing();
  if (own_size) {
    forget(application.id);
    application.expansion = {};
    return follow(application);
  }
  if (!course.request && is_back(application, course)) {
    course.stage = Stage::returning;
    return back(moment, application, course);
  }
  go_back(moment, application, course, 0);
}

// No request is under way, so a size other than the given one is the application's own choice.
void Steering::check_size(const Moment& moment, Application& application, Course& course) {
  if (application.computing_processes() == course.goal) return;
  if (course.stage == Stage::awaited) return drop_passing(moment, application, course);
  give_up(moment, application, course, "it changed its size by itself");
}

// A request to return replaces the one before it. If it cannot be sent, the earlier request is still to be answered.
void Steering::go_back(const Moment& moment, Application& application, Course& course, std::int64_t at_iteration) {
  course.reserved = course.reserved || (course.stage == Stage::going && course.request);
  course.stage = Stage::returning;
  const std::int64_t at = at_iteration > application.malleability.iteration ? at_iteration : 0;
  // A temporary change kept the cores of the earlier size; a permanent one did not, so they must be allocated again.
  const auto request =
      course.goal > cores_.of(application.id)
          ? request_size(moment, application, course.goal, at)
          : resizing_.ask(moment, application, course.goal, at, places_for(application, course.goal, {}));
  if (request) course.request = request.value();  // else the earlier request stays under way
  course.answer_by = moment.now + resizing_.patience(application);
  follow(application);
}

// An expanded application may give back more cores than requested. At its original size nothing remains to be undone.
bool Steering::is_back(const Application& application, Course& course) {
  const std::int64_t now = application.computing_processes();
  const bool expanded = !course.is_passing() && course.lasting.processes > course.lasting.original;
  if ((expanded && now < course.goal) || now == course.top().original) course.goal = now;
  return now == course.goal;
}

void Steering::retry_return(const Moment& moment, Application& application, Course& course) {
  if (is_back(application, course)) return back(moment, application, course);
  go_back(moment, application, course, course.hurried ? 0 : course.passing.return_at);
}

// The application has reported its earlier size, so the cores are free.
void Steering::back(const Moment& moment, Application& application, Course& course) {
  course.request = {};
  course.reserved = false;
  const Layer layer = course.top();
  const bool waits_for_phase = course.is_passing() && !course.hurried && !course.phase_came;
  course.stage = waits_for_phase ? Stage::awaited : Stage::there;
  course.hurried = false;
  course.refusals = 0;
  follow(application);
  const std::int64_t extra = layer.processes - course.goal;
  if (extra > 0) {
    Outcomes::cores_back(moment, application.name, layer.decision, extra, layer.processes - cores_.of(application.id),
                         cores_text(extra) + " of " + quoted(application.name) + (extra == 1 ? " is" : " are") +
                             " free again: it has " + processes_text(application.computing_processes()) +
                             ", as before the decision");
  }
  if (waits_for_phase) return;
  if (course.is_passing()) return drop_passing(moment, application, course);
  course.lasting.processes = course.goal;
  const bool still_changed =
      layer.processes > layer.original ? course.goal > layer.original : course.goal < layer.original;
  if (still_changed) {
    show_expansion(application, course);
    return end_unwanted(moment, application, course);
  }
  forget(application.id);
  application.expansion = {};
}

void Steering::drop_passing(const Moment& moment, Application& application, Course& course) {
  course.passing = {};
  course.start_after = {};
  bound(application.id, course, {});
  if (course.lasting.decision == 0) {
    forget(application.id);
    application.expansion = {};
    return follow(application);
  }
  course.stage = Stage::there;
  course.goal = course.lasting.processes;
  show_expansion(application, course);
  end_unwanted(moment, application, course);
}

// A permanent change is undone if its policy is no longer in force, once no request is under way.
void Steering::end_unwanted(const Moment& moment, Application& application, Course& course) {
  if (!course.unwanted || course.is_passing() || course.hurried) return;
  tell(moment, application, course.lasting.policy, "return", course.lasting.original,
       quoted(application.name) + " has " + processes_text(course.lasting.original) +
           " again: the policy that changed it is not in force any more");
  outcomes_.forget(application.id);
  course.hurried = true;
  course.goal = course.lasting.original;
  go_back(moment, application, course, 0);
}

// A phase counts as fresh if it began after the decision: earlier ones show nothing about the change.
void Steering::fresh_phase(const Moment& moment, Application& application, Course& course) {
  const model::PhaseRecord* last = application.history.last();
  if (course.stage == Stage::returning && !course.request) retry_return(moment, application, course);
  if (!courses_.contains(application.id)) return;
  const bool fresh = last != nullptr && application.history.phases() > course.phases && last->start >= course.decided;
  if (!fresh) return;
  course.phases = application.history.phases();
  course.start_after = {};
  if (course.is_passing() && course.passing.policy != policy_for_measuring) {
    phase_came(moment, application, course);
  } else {
    application.expansion.start_after = {};
  }
}

void Steering::phase_came(const Moment& moment, Application& application, Course& course) {
  course.phase_came = true;
  application.expansion.start_after = {};
  if (course.stage == Stage::awaited) return drop_passing(moment, application, course);
  if (!course.hurried) give_up(moment, application, course, "its I/O phase came before it was back");
}

void Steering::overdue(const Moment& moment, Application& application, Course& course) {
  if (course.stage == Stage::awaited) {
    outcomes_.never_came(moment, application);
    return drop_passing(moment, application, course);
  }
  if (course.hurried) return;  // the return is requested already
  if (course.is_passing()) outcomes_.never_came(moment, application);
  if (course.stage == Stage::there && course.is_passing()) course.stage = Stage::returning;
  give_up(
      moment, application, course,
      course.is_passing() && course.stage != Stage::going ? "its I/O phase did not come" : "it did not answer in time");
}

void Steering::forget(AppId app) {
  const auto found = courses_.find(app);
  if (found != courses_.end()) {
    bound(app, found->second, {});
    courses_.erase(found);
  }
  outcomes_.forget(app);
}

void Steering::show_expansion(Application& application, const Course& course) const {
  const Layer& layer = course.top();
  application.expansion = {layer.decision, std::string{layer.policy}, layer.original, layer.return_at,
                           course.start_after};
}

void Steering::bound(AppId app, Course& course, Time until) {
  if (course.until != Time{}) due_.erase({course.until, app});
  course.until = until;
  if (until != Time{}) due_.emplace(until, app);
}

}  // namespace hocket::coordinator
