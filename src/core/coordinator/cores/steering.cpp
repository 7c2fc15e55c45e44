#include "coordinator/cores/steering.hpp"

#include <algorithm>
#include <cmath>

#include "base/saturating.hpp"

namespace hocket::coordinator {
namespace {

using event::because;
using model::Application;
namespace circumstance = event::circumstance;

// A refused return is requested again at once this often, and from then on after each I/O phase.
constexpr std::int64_t most_refusals = 3;
// Least number of sizes in a curve that is worth storing.
constexpr std::size_t least_remembered = 3;

// Returns the slowdown of applications that overlap, if the access policy lets them overlap unconditionally; else 0.
double together(const CoordinatorSettings& settings, const policy::Combination& policies) {
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

Steering::Steering(const CoordinatorSettings& settings, model::Cluster& cluster, model::Cores& cores,
                   Resizing& resizing, std::int64_t& decisions)
    : settings_(settings),
      cluster_(cluster),
      cores_(cores),
      resizing_(resizing),
      interference_(settings.policy.interference),
      sharing_(settings.policy.sharing),
      together_(together(settings, settings.policy)),
      most_slowdown_(most_slowdown_of(settings, *settings.policy.access)),
      starts_(cores, decisions),
      allocations_(cluster, cores),
      decisions_made_(decisions) {}

// ---- events ------------------------------------------------------------------------------------------------------

void Steering::joined(const Moment& moment, Application& application) {
  starts_.joined(application.job);
  allocations_.joined(application);
  follow(application);
  after(moment, application.id);
}

void Steering::profile(const Moment& moment, const event::Profile& profile) {
  Application* application = cluster_.find(profile.app);
  if (application == nullptr) return;
  const model::CurvePoint point{profile.processes, profile.iteration_s, profile.iteration_spread_s,
                                profile.io_s,      profile.io_spread_s, profile.samples,
                                profile.comm_s};
  // A run that has measured itself keeps to that: points of another input would look like a speedup.
  if (!application->curve_is_seen && !application->curve.add(point)) return;
  if (!application->curve_is_seen) application->extension.told(point);
  application->learn_flop(profile.flop_per_iteration, model::FlopSource::profile);
  after(moment, application->id);
}

void Steering::malleable(const Moment& moment, Application& application, const event::Malleable& said) {
  application.learn_flop(said.flop_per_iteration, model::FlopSource::declared);
  allocations_.joined(application);
  follow(application);
  if (const auto found = courses_.find(application.id); found != courses_.end()) {
    Course& course = found->second;
    if (awaits_answer(course.state)) {
      // Resizing sends the new commanding member what the one before was asked for.
    } else if (needs_retry(course.state)) {
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
        course.state == CourseState::hurrying && phase.processes > 0 && moment.now > course.answer_by;
    if (answer_is_lost) {
      course.request = {};
      resizing_.take_as_answered(application, phase.processes);
      follow(application);
      answered(moment, application, course, phase.processes == course.goal);
    } else if (course.state == CourseState::measuring) {
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
  const std::vector<NodeCount> had = cores_.shares_of(application.id);
  follow(application);
  const auto found = courses_.find(application.id);
  // A temporary expansion is likely to come again, and needs cores at once.
  const bool is_lasting = found == courses_.end() || !found->second.is_passing();
  if (found != courses_.end()) {
    Course& course = found->second;
    const bool awaited = awaits_answer(course.state);
    if (awaited && course.request == record.request) {
      answered(moment, application, course, record.done);
    } else if (!awaited && record.done && !needs_retry(course.state)) {
      check_size(moment, application, course);
    }
  }
  if (record.done && record.targets < record.sources && is_lasting) allocations_.left(moment, application, had);
  after(moment, application.id);
}

// An operator's resize has precedence. It also ends the policies' claim on the application's earlier changes.
void Steering::resized_by_tool(const Moment& moment, Application& application) {
  if (const auto found = courses_.find(application.id); found != courses_.end()) {
    Course& course = found->second;
    tell(moment, application, course.top().policy, "cancel", application.malleability.resizing_to,
         because(circumstance::resized_by_hand));
    if (awaits_answer(course.state)) begun_[application.id] = std::max(course.goal, course.top().processes);
    apply(moment, application, course, CourseInput::take_over);
  }
  set_by_tool_.insert(application.id);
  follow(application);
  reclaim(moment);
}

void Steering::member_left(const Moment& moment, Application& application) {
  follow(application);
  const auto found = courses_.find(application.id);
  if (found != courses_.end() && awaits_answer(found->second.state) && application.malleability.resizing_to == 0) {
    // The member that was asked is lost. The next commanding member completes the return.
    Course& course = found->second;
    course.request = {};
    apply(moment, application, course, CourseInput::lose, because(circumstance::process_lost));
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

void Steering::gone(const Moment& moment, AppId app, const std::string& name, const std::string& job) {
  if (const auto found = courses_.find(app); found != courses_.end()) {
    const SizeChange& layer = found->second.top();
    const std::int64_t extra = cores_.of(app) - layer.original;
    if (extra > 0) Outcomes::ended(moment, name, layer.decision, extra);
  }
  forget(app);
  cores_.release_all(app);
  allocations_.gone(app, job);
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
  starts_.expire(moment.now);
  reclaim(moment);
}

void Steering::ask_cores(const Moment& moment, const event::AskCores& asked) {
  // It may start, as without an answer: nobody here knows which cores are free.
  if (!resizing_.gives_out()) {
    const std::int64_t all = std::clamp<std::int64_t>(asked.processes, 0, model::most_processes);
    moment.commands.push_back({moment.event.origin.member, event::CoresFor{asked.job, false, all, {}}});
    return;
  }
  starts_.ask(moment, asked);
  reclaim(moment);
}

void Steering::asker_left(const Moment& moment) {
  starts_.leave(moment.event.origin.member);
  allocations_.withdraw(moment.event.origin.member);
  allocations_.tool_left(moment.event.origin.member);
  reclaim(moment);
}

std::optional<Time> Steering::deadline() const {
  std::optional<Time> next = starts_.deadline();
  if (!due_.empty()) next = std::min(next.value_or(Time::max()), due_.begin()->first);
  return next;
}

void Steering::node_cores(const Moment& moment, const event::NodeCores& told) {
  cores_.set_node(told.node, told.cores);
  after(moment, {});
}

// The launcher does not know new nodes. MPICH's mpiexec 5.0 ends if it is to choose one after a node was left.
void Steering::place(const Application& application, event::Resize& resize) {
  const std::int64_t present = application.computing_processes();
  const std::int64_t wanted = resize.relative ? saturating_sum(present, resize.processes) : resize.processes;
  const bool is_bound = application.malleability.malleable && must_be_placed(application);
  if (!is_bound || !resize.places.empty() || wanted <= present || wanted > model::most_processes) return;
  const auto fresh = cores_.allocate(application.id, std::max<std::int64_t>(0, wanted - cores_.of(application.id)));
  resize.places = places_for(application, wanted, fresh ? *fresh : std::vector<NodeCount>{});
}

bool Steering::lacks_places(const Application& application, const event::Resize& resize) const {
  const std::int64_t present = application.computing_processes();
  const std::int64_t wanted = resize.relative ? saturating_sum(present, resize.processes) : resize.processes;
  if (!resize.places.empty() || wanted <= present || wanted > model::most_processes) return false;
  if (!application.malleability.malleable || application.malleability.to_start(wanted) == 0) return false;
  return allocations_.has_changed(application) && !resizing_.cores_exceeded(application, wanted);
}

// Programs of Open MPI grow on their first node, whose name is not needed.
bool Steering::must_be_placed(const Application& application) const {
  return application.mpi != "openmpi" && !cores_.allocation_in_use(application.id).empty();
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
    // The application may have begun the first request before it received the request to return.
    if (at.request) uses = std::max({uses, at.goal, at.kept});
    if (at.is_passing() && at.state != CourseState::awaited) uses = std::max(uses, at.passing.original);
  }
  cores_.settle(application.id, uses, application.runs_on(), application.node);
}

// ---- the life of a course ----------------------------------------------------------------------------------------

void Steering::apply(const Moment& moment, Application& application, Course& course, CourseInput input,
                     const event::Reason& why) {
  const auto [next, actions] = course_step(course.state, input);
  course.state = next;
  if (does(actions, CourseAction::keep_cores)) course.kept = course.top().processes;
  if (does(actions, CourseAction::cancel)) {
    give_up(moment, application, course, why);
    const bool is_there = does(actions, CourseAction::go_back) && !course.request && is_back(application, course);
    if (is_there) return apply(moment, application, course, CourseInput::back);
  }
  if (does(actions, CourseAction::plan_back)) course.goal = course.passing.original;
  if (does(actions, CourseAction::go_back) || does(actions, CourseAction::plan_back))
    return go_back(moment, application, course);
  if (does(actions, CourseAction::ask_again)) {
    if (++course.refusals <= most_refusals) return go_back(moment, application, course);
    return apply(moment, application, course, CourseInput::unsent);
  }
  if (does(actions, CourseAction::settle)) {
    bound(application.id, course, {});
    outcomes_.in_force(application);
    return end_unwanted(moment, application, course);
  }
  if (does(actions, CourseAction::measure))
    return bound(application.id, course, moment.now + resizing_.patience(application));
  if (does(actions, CourseAction::arrive)) return arrive(moment, application, course);
  if (does(actions, CourseAction::drop_passing)) return drop_passing(moment, application, course);
  if (does(actions, CourseAction::forget)) {
    forget(application.id);
    application.expansion = {};
    follow(application);
  }
}

void Steering::answered(const Moment& moment, Application& application, Course& course, bool done) {
  course.request = {};
  if (is_under_way(course.state)) {
    if (!done || application.computing_processes() != course.goal) {
      refused_[application.id] = {application.history.phases(), moment.now + resizing_.patience(application)};
      return apply(moment, application, course, CourseInput::refuse,
                   because(done ? circumstance::other_size : circumstance::not_done));
    }
    follow(application);
    const bool late =
        course.state == CourseState::shifting && course.passing.return_at <= application.malleability.iteration;
    return apply(moment, application, course, late ? CourseInput::too_late : CourseInput::reach,
                 event::ResizedTooLate{course.passing.return_at});
  }
  course.kept = 0;
  follow(application);
  apply(moment, application, course, is_back(application, course) ? CourseInput::back : CourseInput::refuse);
}

void Steering::give_up(const Moment& moment, Application& application, Course& course, event::Reason why) {
  const SizeChange& layer = course.top();
  const bool own_size = course.state == CourseState::none;
  tell(moment, application, layer.policy, "cancel", own_size ? application.computing_processes() : layer.original,
       event::GivenUp{layer.decision}, std::move(why));
  outcomes_.forget(application.id);
  course.goal = course.is_passing() ? layer.original : course.before;
}

// No request is under way, so a size other than the given one is the application's own choice.
void Steering::check_size(const Moment& moment, Application& application, Course& course) {
  if (application.computing_processes() == course.goal) return;
  apply(moment, application, course, CourseInput::own_size, because(circumstance::own_size));
}

// A request to return replaces the one before it. If it cannot be sent, the earlier request is still to be answered.
void Steering::go_back(const Moment& moment, Application& application, Course& course) {
  const std::int64_t planned = course.state == CourseState::returning ? course.passing.return_at : 0;
  const std::int64_t at = planned > application.malleability.iteration ? planned : 0;
  // A temporary change kept the cores of the earlier size; a permanent one did not, so they must be allocated again.
  const auto request = course.goal > cores_.of(application.id)
                           ? request_size(moment, application, course.goal, at)
                           : resizing_.ask(moment, application, course.goal, at,
                                           {places_for(application, course.goal, {}), course.top().nodes});
  if (request) course.request = request.id;  // else the earlier request stays under way
  course.answer_by = moment.now + resizing_.patience(application);
  follow(application);
  if (!course.request) apply(moment, application, course, CourseInput::unsent);
}

// An expanded application may give back more cores than requested. At its original size nothing remains to be undone.
bool Steering::is_back(const Application& application, Course& course) {
  const std::int64_t now = application.computing_processes();
  const bool expanded = !course.is_passing() && course.lasting.processes > course.lasting.original;
  if ((expanded && now < course.goal) || now == course.top().original) course.goal = now;
  return now == course.goal;
}

void Steering::retry_return(const Moment& moment, Application& application, Course& course) {
  apply(moment, application, course, is_back(application, course) ? CourseInput::back : CourseInput::retry);
}

// The application has reported its earlier size, so the cores are free.
void Steering::arrive(const Moment& moment, Application& application, Course& course) {
  course.request = {};
  course.kept = 0;
  course.refusals = 0;
  const SizeChange layer = course.top();
  follow(application);
  const std::int64_t extra = layer.processes - course.goal;
  if (extra > 0) {
    Outcomes::cores_back(moment, application, layer.decision, extra, layer.processes - cores_.of(application.id));
  }
  if (course.state == CourseState::awaited) return;
  if (course.is_passing()) return drop_passing(moment, application, course);
  course.lasting.processes = course.goal;
  const bool still_changed =
      layer.processes > layer.original ? course.goal > layer.original : course.goal < layer.original;
  if (still_changed) {
    bound(application.id, course, {});  // nothing is asked any more: the limit was that of a change that was reclaimed
    show_expansion(application, course);
    return end_unwanted(moment, application, course);
  }
  apply(moment, application, course, CourseInput::no_change);
}

void Steering::drop_passing(const Moment& moment, Application& application, Course& course) {
  course.passing = {};
  course.start_after = {};
  bound(application.id, course, {});
  if (course.lasting.decision == 0) return apply(moment, application, course, CourseInput::no_change);
  course.goal = course.lasting.processes;
  show_expansion(application, course);
  end_unwanted(moment, application, course);
}

// A permanent change is undone if its policy is no longer in force, once no request is under way.
void Steering::end_unwanted(const Moment& moment, Application& application, Course& course) {
  if (!course.unwanted || !has_effect(course.state, CourseInput::disown)) return;
  tell(moment, application, course.lasting.policy, "return", course.lasting.original, event::PolicyEnded{});
  outcomes_.forget(application.id);
  course.goal = course.lasting.original;
  apply(moment, application, course, CourseInput::disown);
}

// A phase counts as fresh if it began after the decision: earlier ones show nothing about the change.
void Steering::fresh_phase(const Moment& moment, Application& application, Course& course) {
  const model::PhaseRecord* last = application.history.last();
  if (needs_retry(course.state)) retry_return(moment, application, course);
  if (!courses_.contains(application.id)) return;
  const bool fresh = last != nullptr && application.history.phases() > course.phases && last->start >= course.decided;
  if (!fresh) return;
  course.phases = application.history.phases();
  course.start_after = {};
  application.expansion.start_after = {};
  apply(moment, application, course, CourseInput::phase, because(circumstance::phase_early));
}

void Steering::overdue(const Moment& moment, Application& application, Course& course) {
  if (!has_effect(course.state, CourseInput::overdue)) return;  // the return is requested already
  const bool phase_missing = course.is_passing() && !is_under_way(course.state);
  if (course.is_passing()) outcomes_.never_came(moment, application);
  apply(moment, application, course, CourseInput::overdue,
        because(phase_missing ? circumstance::phase_missing : circumstance::no_answer));
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
  const SizeChange& layer = course.top();
  application.expansion = {layer.decision,     std::string{layer.policy}, layer.original,         layer.return_at,
                           course.start_after, layer.because_of,          layer.original_period_s};
}

void Steering::bound(AppId app, Course& course, Time until) {
  if (course.until != Time{}) due_.erase({course.until, app});
  course.until = until;
  if (until != Time{}) due_.emplace(until, app);
}

}  // namespace hocket::coordinator
