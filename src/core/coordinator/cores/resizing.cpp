#include "coordinator/cores/resizing.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/nearest.hpp"
#include "base/places.hpp"
#include "base/saturating.hpp"
#include "explain/explain.hpp"
#include "explain/words.hpp"

namespace hocket::coordinator {
namespace {

using explain::number;
using explain::processes_text;
using explain::quoted;
using model::Application;
using model::Malleability;

// Time limit of a resize in I/O periods. An application can resize only at control points.
constexpr std::int64_t patient_periods = 4;

// Returns the number of processes that the application uses while its resize is under way.
std::int64_t cores_used(const Application& application) {
  return std::max(application.computing_processes(), application.malleability.resizing_to);
}

Status check_places(const Application& application, std::int64_t processes, const std::string& places) {
  const auto given = places_of(places);
  if (!given) {
    return Error{"places: " + quoted(given.error().text) +
                 " is no place: write NODE or NODE:CORE, one for each new process"};
  }
  const auto count = static_cast<std::int64_t>(given.value().size());
  const std::int64_t expected = application.malleability.to_start(processes);
  if (count == 0 || count == expected) return success();
  return Error{"places: " + number(count) + " are given, but " + quoted(application.name) + " gets " +
               processes_text(expected) + " that must be started: give one place for each, or none"};
}

Status check_iteration(const Application& application, std::int64_t at) {
  if (at < 0) return Error{"iteration " + number(at) + " does not exist: give 1 or more, or 0 for the next one"};
  const std::int64_t done = application.malleability.iteration;
  if (at == 0 || at > done) return success();
  return Error{"iteration " + number(at) + " is past: " + quoted(application.name) + " has done " + number(done) +
               "; give a later one, or 0 for the next one"};
}

// Returns the method of a reconfiguration in the notation of MALLEABLE.
std::string method_of(const event::Reconfiguration& record) {
  return record.spawn + " " + record.spawn_strategy + ", " + record.redistribution + " " +
         record.redistribution_strategy;
}

}  // namespace

void Resizing::malleable(const model::Member& member, const event::Malleable& said) {
  Malleability& state = member.application->malleability;
  state.malleable = true;
  state.commanding = member.id;
  state.processes = std::clamp<std::int64_t>(said.processes, 1, model::most_processes);
  state.iteration = std::max<std::int64_t>(0, said.iteration);
  state.sleeping = std::clamp<std::int64_t>(said.sleeping, 0, model::most_processes);
  state.method = said.method;
}

Application* Resizing::resize(const Moment& moment, const event::Resize& asked) {
  const MemberId tool = moment.event.origin.member;
  const auto refuse = [&](const Error& why) -> Application* {
    moment.commands.push_back({tool, event::Refused{"cannot resize: " + why.text}});
    return nullptr;
  };
  Application* application = cluster_.find_application(asked.application);
  if (application == nullptr) return refuse(no_such_application(asked.application));
  const auto processes = processes_after(*application, asked);
  if (!processes) return refuse(processes.error());
  send(moment, *application, tool, processes.value(), asked.at_iteration, asked.places);
  return application;
}

SizeRequest Resizing::ask(const Moment& moment, Application& application, std::int64_t processes,
                          std::int64_t at_iteration, const std::string& places) {
  const Malleability& state = application.malleability;
  if (!state.malleable || !state.commanding) return {{}, event::because(event::circumstance::nobody_commands)};
  if (is_for_tool(application.id)) return {{}, event::ResizedByTool{state.resizing_to}};
  return {send(moment, application, {}, processes, at_iteration, places), {}};
}

void Resizing::take_as_answered(Application& application, std::int64_t processes) {
  if (is_for_tool(application.id)) return;
  apply(application, ResizeInput::show);
  application.malleability.processes = std::clamp<std::int64_t>(processes, 1, model::most_processes);
}

ResizeState Resizing::state_of(AppId app) const {
  const auto resize = under_way_.find(app);
  return resize == under_way_.end() ? ResizeState::none : resize->second.state;
}

ResizeAction Resizing::apply(Application& application, ResizeInput input) {
  const auto resize = under_way_.find(application.id);
  if (resize == under_way_.end()) return ResizeAction::nothing;
  const ResizeStep step = resize_step(resize->second.state, input);
  resize->second.state = step.next;
  if (step.next == ResizeState::none) {
    under_way_.erase(resize);
    application.malleability.resizing_to = 0;
  }
  return step.action;
}

RequestId Resizing::send(const Moment& moment, Application& application, MemberId asked_by, std::int64_t processes,
                         std::int64_t at_iteration, const std::string& places) {
  const RequestId request{++requests_made_};
  const ResizeInput input = asked_by ? ResizeInput::tool_asks : ResizeInput::policy_asks;
  const ResizeState next = resize_step(state_of(application.id), input).next;
  application.malleability.resizing_to = processes;
  under_way_[application.id] = {request, next, asked_by, at_iteration};
  moment.commands.push_back(
      {application.malleability.commanding, event::Reconfigure{request, processes, at_iteration, places, moment.now}});
  return request;
}

Result<std::int64_t> Resizing::processes_after(const Application& application, const event::Resize& asked) const {
  const Malleability& state = application.malleability;
  const std::string name = quoted(application.name);
  if (!state.malleable) {
    return Error{name +
                 " is not malleable: it does not call hocket_malleable_create and hocket_malleable_begin, or "
                 "its MPI cannot start processes"};
  }
  if (is_for_tool(application.id)) {
    return Error{name + " is being resized to " + processes_text(state.resizing_to) +
                 " already: wait until it has ended"};
  }
  if (!state.commanding) {
    return Error{name + " has lost the process that receives resize requests: try again when another has taken over"};
  }
  const std::int64_t processes = asked.relative ? saturating_sum(state.processes, asked.processes) : asked.processes;
  if (processes < 1) {
    return Error{name + " has " + processes_text(state.processes) + " and would have " + number(processes) +
                 ": it needs at least 1"};
  }
  if (processes == state.processes) return Error{name + " has " + processes_text(processes) + " already"};
  if (processes > state.processes) {
    if (const auto exceeded = cores_exceeded(application, processes)) {
      return Error{explain::sentence(*exceeded, application.name)};
    }
  }
  if (const Status ahead = check_iteration(application, asked.at_iteration); !ahead) return ahead.error();
  if (const Status placed = check_places(application, processes, asked.places); !placed) return placed.error();
  return processes;
}

std::optional<event::CoresExceeded> Resizing::cores_exceeded(const Application& application,
                                                             std::int64_t processes) const {
  std::int64_t others = 0;
  for (const auto& [id, other] : cluster_.applications()) {
    // Cores that another application was given and may still come to use count too.
    if (id != application.id) others = saturating_sum(others, std::max(cores_used(other), cores_.of(id)));
  }
  if (saturating_sum(processes, others) <= settings_.cores) return std::nullopt;
  return event::CoresExceeded{processes, settings_.cores, others};
}

Error Resizing::no_such_application(const std::string& name) const {
  constexpr std::size_t longest_list = 400;
  std::vector<std::string_view> names;
  std::string list;
  for (const auto& [id, application] : cluster_.applications()) {
    names.emplace_back(application.name);
    if (list.ends_with("…")) continue;
    const bool fits = list.size() + application.name.size() <= longest_list;
    list += (list.empty() ? "" : ", ") + (fits ? application.name : "…");
  }
  if (names.empty()) return Error{"no application runs"};
  std::string text = "no application " + quoted(name) + " runs; did you mean ";
  const std::string_view known = nearest(name, names);
  return Error{text + quoted(std::string{known}) + "? There are: " + list};
}

void Resizing::ended(const Moment& moment, const model::Member& member, const event::Reconfiguration& record) {
  Application& application = *member.application;
  Malleability& state = application.malleability;
  if (record.done) {
    state.processes = std::clamp<std::int64_t>(record.targets, 1, model::most_processes);
    state.iteration = std::max(state.iteration, record.iteration);
    const auto changed = [](std::int64_t n) { return std::clamp<std::int64_t>(n, 0, model::most_processes); };
    state.sleeping = changed(state.sleeping + changed(record.put_to_sleep) - changed(record.woken));
    ++state.reconfigurations;
    state.costs.add({record.sources, record.targets, record.started, method_of(record)}, record.stopped);
  } else if (record.sources > 0) {
    state.processes = std::clamp<std::int64_t>(record.sources, 1, model::most_processes);  // its own count
  }
  const auto resize = under_way_.find(application.id);
  if (resize == under_way_.end() || resize->second.request != record.request) return;
  const MemberId tool = resize->second.asked_by;
  if (apply(application, ResizeInput::answer) == ResizeAction::report) moment.commands.push_back({tool, record});
}

bool Resizing::withdraw(const Moment& moment) {
  bool any = false;
  for (const auto& [id, resize] : under_way_) {
    if (resize.asked_by != moment.event.origin.member) continue;
    if (resize_step(resize.state, ResizeInput::withdraw).action != ResizeAction::withdraw) continue;
    any = true;
    const MemberId commanding = cluster_.applications().at(id).malleability.commanding;
    if (commanding) moment.commands.push_back({commanding, event::WithdrawResize{resize.request, false}});
  }
  return any;
}

void Resizing::begun(const Moment& moment, const model::Member& member, const event::WithdrawResize& said) {
  const auto resize = under_way_.find(member.application->id);
  if (resize == under_way_.end() || resize->second.request != said.request) return;
  if (apply(*member.application, ResizeInput::begin) == ResizeAction::tell_begun) {
    moment.commands.push_back({resize->second.asked_by, said});
  }
}

Duration Resizing::patience(const Application& application) const {
  return settings_.join_limit + patient_periods * std::min(longest_period, application.history.period().mean);
}

bool Resizing::answer_is_lost(const Moment& moment, Application& application, const event::IoPhase& phase) {
  const auto found = under_way_.find(application.id);
  if (found == under_way_.end() || !is_of_tool(found->second.state)) return false;
  PendingResize& resize = found->second;
  if (phase.iteration < resize.at_iteration) return false;
  if (apply(application, ResizeInput::reach) == ResizeAction::note) resize.reached = phase.iteration;
  if (phase.iteration <= resize.reached) return false;
  if (apply(application, ResizeInput::pass) == ResizeAction::start_limit) {
    resize.answer_by = moment.now + patience(application);
  }
  if (moment.now <= resize.answer_by) return false;
  Malleability& state = application.malleability;
  if (phase.processes > 0) state.processes = std::min(phase.processes, model::most_processes);
  give_up(moment, application, ResizeInput::expire,
          "did not report how its resize ended: it is past iteration " + number(phase.iteration) + " with " +
              processes_text(state.processes));
  return true;
}

// If new processes alone take over (baseline), the commanding member leaves in order. Another member then reports how
// the resize ended.
void Resizing::leave(const Moment& moment, const model::Member& member, bool in_order) {
  Application& application = *member.application;
  const bool last = application.members.size() == 1;
  const bool commands = application.malleability.commanding == member.id;
  if (last || (commands && !in_order)) {
    give_up(moment, application, ResizeInput::lose, "ended before it was resized");
  }
}

void Resizing::give_up(const Moment& moment, Application& application, ResizeInput input, const std::string& why) {
  const auto resize = under_way_.find(application.id);
  if (resize == under_way_.end()) return;
  const MemberId tool = resize->second.asked_by;
  if (apply(application, input) == ResizeAction::give_up) {
    moment.commands.push_back({tool, event::Refused{quoted(application.name) + " " + why}});
  }
}

}  // namespace hocket::coordinator
