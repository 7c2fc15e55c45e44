// This part of Steering turns the decisions of core policies into requests to applications.
#include <algorithm>

#include "base/saturating.hpp"
#include "coordinator/cores/steering.hpp"
#include "model/prediction.hpp"

namespace hocket::coordinator {
namespace {

using event::because;
using model::Application;
namespace circumstance = event::circumstance;

// Longest list of places that is sent, in entries and in bytes. Without a list, new processes go anywhere. A frame
// holds 64 KiB.
constexpr std::size_t longest_places = 8192;
// Largest share of its time for which policies' resizes stop an application, unless most_slowdown says otherwise. The
// first is for a change and its return. The second is for a permanent change, whose gain makes up for more.
constexpr double most_stopped = 0.05;
constexpr double most_stopped_for_good = 0.5;
// Conflicts reported for one application in one I/O period; further ones are not reported.
constexpr std::size_t most_told = 8;

// Returns one node name for each core of the shares, at most `most`.
std::vector<std::string_view> names_of(const std::vector<NodeCount>& shares, std::int64_t most) {
  std::vector<std::string_view> names;
  for (const NodeCount& share : shares) {
    const auto room = static_cast<std::size_t>(most) - names.size();
    names.insert(names.end(), std::min(room, static_cast<std::size_t>(share.count)), share.node);
  }
  return names;
}

// Returns the configured uncertainty of a prediction, or the observed one of the application's next I/O phase.
Duration uncertainty_of(const Application& application, const policy::CoreSettings& settings, Time now) {
  if (settings.uncertainty >= Duration{}) return settings.uncertainty;
  const auto next = application.history.predict(now, 1);
  return next.empty() ? Duration{} : next.front().uncertainty;
}

event::Decision decision_about(const Application& application, std::int64_t number, std::string_view policy) {
  event::Decision decision;
  decision.number = number;
  decision.policy = policy;
  decision.decided_for = application.name;
  return decision;
}

}  // namespace

void Steering::ask_policies(const Moment& moment, AppId subject) {
  for (const policy::CorePolicy* policy : {interference_, sharing_}) {
    if (policy == nullptr) continue;
    for (const std::string& allocation : allocations_for(*policy, subject)) {
      const policy::CoreView view{cluster_, cores_, settings_.core, moment.now, together_, most_slowdown_, allocation};
      const policy::CoreDecision decision = policy->decide(view, moment.event, subject);
      for (const policy::LeftAlone& left : decision.left_alone) leave(moment, policy->name, left);
      for (const policy::CoreChange& change : decision.changes) carry_out(moment, *policy, change);
    }
  }
}

std::vector<std::string> Steering::allocations_for(const policy::CorePolicy& policy, AppId subject) const {
  if (subject) return {cores_.allocation_in_use(subject)};
  return policy.kind == policy::CoreKind::sharing ? cores_.allocations() : std::vector<std::string>{""};
}

// A course is recorded only after the application was asked. A change that cannot be carried out becomes a DECISION
// "leave" with the reason.
void Steering::carry_out(const Moment& moment, const policy::CorePolicy& policy, const policy::CoreChange& change) {
  Application* application = cluster_.find(change.application);
  if (application == nullptr) return;
  SizeRequest request{{}, what_prevents(moment, *application, change)};
  const std::int64_t before = application->computing_processes();
  const Duration uncertainty = uncertainty_of(*application, settings_.core, moment.now);
  if (is_none(request.obstacle)) {
    request = request_size(moment, *application, change.processes, change.at_iteration);
  }
  if (!request) {
    return leave(moment, policy.name,
                 {change.application, change.because_of, change.conflict, change.overlap, change.reason,
                  std::move(request.obstacle), false, change.processes, change.text});
  }

  Course& course = courses_[application->id];
  const bool for_good = change.return_at_iteration == 0;
  const char* action = change.processes > before ? "expand" : "shrink";
  SizeChange& layer = for_good ? course.lasting : course.passing;
  if (!for_good || layer.decision == 0) {
    const auto pace = model::pace(*application, before);
    layer.original = before;
    layer.original_period_s = pace ? pace->period_s() : 0;
    layer.nodes = application->runs_on();
  }
  layer.decision = ++decisions_made_;
  layer.policy = policy.name;
  layer.processes = change.processes;
  layer.return_at = change.return_at_iteration;
  layer.because_of = change.because_of;
  course.state = course_step(course.state, for_good ? CourseInput::change : CourseInput::shift).next;
  course.request = request.id;
  course.goal = change.processes;
  course.decided = moment.now;
  course.before = before;
  course.kept = 0;
  course.refusals = 0;
  course.start_after = change.start_after;
  course.phases = application->history.phases();
  Time until = moment.now + resizing_.patience(*application);
  // The predicted phase may be far away. The time limit then covers its start, the uncertainty and one more period.
  if (change.start_after > moment.now) {
    const Duration period = std::min(longest_period, application->history.period().mean);
    const Time latest = moment.now + longest_period;
    until = std::max(until, std::min(change.start_after, latest) + std::min(longest_period, uncertainty) + period);
  }
  bound(application->id, course, until);
  show_expansion(*application, course);
  outcomes_.expect(moment, *application, layer.decision, change, saturating_sum(uncertainty, change.resize_spread));

  const Application* other = change.because_of ? cluster_.find(change.because_of) : nullptr;
  event::Decision told = decision_about(*application, layer.decision, policy.name);
  if (other != nullptr) told.because_of = other->name;
  told.action = action;
  told.from = before;
  told.to = change.processes;
  told.at_iteration = change.at_iteration;
  told.return_at_iteration = change.return_at_iteration;
  told.conflict = change.conflict;
  told.overlap = change.overlap;
  told.start_before = change.start_before;
  told.start_after = change.start_after;
  told.period_after = change.period_after;
  told.text = change.text;
  told.reason = change.reason;
  moment.commands.push_back({{}, std::move(told)});
}

event::Reason Steering::what_prevents(const Moment& moment, const Application& application,
                                      const policy::CoreChange& change) const {
  const model::Malleability& state = application.malleability;
  if (!resizing_.gives_out()) return because(circumstance::later_leader);
  if (!state.malleable) return because(circumstance::not_malleable);
  if (set_by_tool_.contains(application.id)) return because(circumstance::set_by_hand);
  const auto course = courses_.find(application.id);
  const bool busy =
      course != courses_.end() && (course->second.unwanted || !has_effect(course->second.state, CourseInput::change));
  if (state.resizing_to != 0 || busy) return because(circumstance::being_resized);
  const auto refused = refused_.find(application.id);
  if (refused != refused_.end() && application.history.phases() == refused->second.phases &&
      moment.now < refused->second.until) {
    return because(circumstance::resize_refused);
  }
  if (change.processes < 1 || change.processes > model::most_processes) {
    return event::InvalidSize{change.processes, model::most_processes};
  }
  const std::int64_t limit = settings_.core.limit_of(application);
  if (change.processes > limit) return event::InvalidSize{change.processes, limit};
  if (change.processes == application.computing_processes()) return because(circumstance::same_size);
  if (change.at_iteration < 0 || (change.at_iteration != 0 && change.at_iteration <= state.iteration)) {
    return event::IterationPast{change.at_iteration, state.iteration};
  }
  const bool returns = change.return_at_iteration != 0;
  if (const auto too_long = stops_too_long(moment, application, change.processes, returns)) return *too_long;
  const std::int64_t least = std::max(change.at_iteration, state.iteration);
  if (change.return_at_iteration != 0 && change.return_at_iteration <= least) {
    return event::ReturnsTooEarly{change.return_at_iteration};
  }
  return {};
}

// This bound holds whatever the policies expect, because their expectations may be wrong again and again. The first
// resize is an attempt, since its cost is not known yet.
std::optional<event::StopsTooLong> Steering::stops_too_long(const Moment& moment, const Application& application,
                                                            std::int64_t processes, bool returns) const {
  const model::Malleability& state = application.malleability;
  const std::int64_t present = application.computing_processes();
  const auto out = state.cost_of(present, processes);
  if (!out) return std::nullopt;
  const double cost_s = out->value + (returns ? state.cost_of(processes, present)->value : 0);
  const double stopped_s = to_s(state.costs.stopped());
  const double usual = returns ? most_stopped : most_stopped_for_good;
  const double share = most_slowdown_ > 0 ? most_slowdown_ : usual;
  const double runs_s = to_s(moment.now - application.arrived);
  if (stopped_s + cost_s <= share * runs_s) return std::nullopt;
  return event::StopsTooLong{stopped_s + cost_s, runs_s, share};
}

// The cores are allocated before the request and released if it cannot be sent, so a failure changes nothing.
SizeRequest Steering::request_size(const Moment& moment, Application& application, std::int64_t processes,
                                   std::int64_t at_iteration) {
  const std::int64_t more = processes - cores_.of(application.id);
  std::vector<NodeCount> fresh;
  if (more > 0 && !resizing_.gives_out()) return {{}, because(circumstance::later_leader)};
  if (processes > application.computing_processes()) {
    if (const auto exceeded = resizing_.cores_exceeded(application, processes)) return {{}, *exceeded};
  }
  if (more > 0) {
    auto shares = cores_.allocate(application.id, more);
    if (!shares) return {{}, event::CoresMissing{more, cores_.free_for(application.id)}};
    fresh = std::move(*shares);
  }
  std::string places = places_for(application, processes, fresh);
  const std::int64_t fresh_processes = application.malleability.to_start(processes);
  const bool may_ask = !places.empty() || fresh_processes == 0 || !allocations_.has_changed(application);
  SizeRequest request{{}, event::CoresMissing{fresh_processes, 0}};
  if (may_ask) request = resizing_.ask(moment, application, processes, at_iteration, {std::move(places), {}});
  if (!request && more > 0) cores_.release(application.id, more);
  return request;
}

// `fresh` are the cores that were just allocated for the new processes. If they are too few, all cores of the
// application are considered.
std::string Steering::places_for(const Application& application, std::int64_t processes,
                                 const std::vector<NodeCount>& fresh) const {
  const std::int64_t count = application.malleability.to_start(processes);
  if (!cores_.has_several() || count == 0 || static_cast<std::size_t>(count) > longest_places) return {};
  std::vector<std::string_view> names = names_of(fresh, count);
  std::vector<NodeCount> all;
  if (static_cast<std::int64_t>(names.size()) < count) {
    all = cores_.shares_of(application.id);
    names = names_of(all, count);
  }
  // One node needs no name: a launcher may know it by another one, and would start there anyway.
  const std::vector<NodeCount>& runs = application.runs_on();
  const auto is_home = [&](std::string_view name) { return name == runs.front().node; };
  const bool is_at_home = runs.size() == 1 && std::all_of(names.begin(), names.end(), is_home);
  if (is_at_home && !must_be_placed(application)) return {};
  std::string places;
  for (const std::string_view name : names) places.append(places.empty() ? "" : " ").append(name);
  const bool complete = static_cast<std::int64_t>(names.size()) == count;
  return complete && places.size() <= longest_places ? places : std::string{};
}

// The same conflict is reported once in an I/O period of the application, or once in all if `left.once` is set.
void Steering::leave(const Moment& moment, std::string_view policy, const policy::LeftAlone& left) {
  const Application* application = cluster_.find(left.application);
  if (application == nullptr) return;
  if (left.once && !told_once_.insert(left.application).second) return;
  const std::int64_t phases = application->history.phases();
  std::vector<ReportedConflict>& told = told_[left.application];
  std::erase_if(told, [phases](const ReportedConflict& one) { return one.phases != phases; });
  const auto same = [&](const ReportedConflict& one) {
    return one.policy == policy && one.because_of == left.because_of;
  };
  if (told.size() >= most_told || std::any_of(told.begin(), told.end(), same)) return;
  told.push_back({policy, left.because_of, phases});
  const Application* other = left.because_of ? cluster_.find(left.because_of) : nullptr;
  const std::int64_t size = application->computing_processes();
  event::Decision decision = decision_about(*application, ++decisions_made_, policy);
  if (other != nullptr) decision.because_of = other->name;
  decision.action = "leave";
  decision.from = decision.to = size;
  decision.conflict = left.conflict;
  decision.overlap = left.overlap;
  decision.text = left.text;
  decision.reason = left.reason;
  decision.obstacle = left.obstacle;
  decision.wanted = left.wanted;
  moment.commands.push_back({{}, std::move(decision)});
}

std::int64_t Steering::tell(const Moment& moment, const Application& application, std::string_view policy,
                            const char* action, std::int64_t to, event::Reason reason, event::Reason obstacle) {
  event::Decision decision = decision_about(application, ++decisions_made_, policy);
  decision.action = action;
  decision.from = application.computing_processes();
  decision.to = to;
  decision.reason = std::move(reason);
  decision.obstacle = std::move(obstacle);
  moment.commands.push_back({{}, std::move(decision)});
  return decisions_made_;
}

}  // namespace hocket::coordinator
