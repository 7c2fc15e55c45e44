#include "coordinator/cores/resizing.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/nearest.hpp"
#include "base/node_counts.hpp"
#include "base/places.hpp"
#include "base/saturating.hpp"
#include "coordinator/cores/leaving.hpp"
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
// Most bytes of the nodes to be left: a frame holds 64 KiB.
constexpr std::size_t longest_leave = 8192;

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

Status check_leave(const Application& application, std::int64_t processes, const std::string& leave) {
  if (leave.empty()) return success();
  const auto named = node_counts_of(leave, model::most_processes);
  if (!named) {
    return Error{"leave: " + quoted(named.error().text) + " is no node to leave: write NODE or NODE=PROCESSES"};
  }
  if (processes > application.computing_processes()) {
    return Error{"leave: " + quoted(application.name) + " would grow: name nodes only if it shrinks"};
  }
  const std::vector<NodeCount>& runs = application.runs_on();
  for (const NodeCount& node : named.value()) {
    const bool is_there = std::any_of(runs.begin(), runs.end(), [&](const auto& one) { return one.node == node.node; });
    if (runs.empty() || is_there) continue;
    return Error{"leave: " + quoted(application.name) + " has no process on " + quoted(node.node) + ": it runs on " +
                 text_of(runs, longest_leave)};
  }
  return success();
}

Status check_iteration(const Application& application, std::int64_t at) {
  if (at < 0) return Error{"iteration " + number(at) + " does not exist: give 1 or more, or 0 for the next one"};
  const std::int64_t done = application.malleability.iteration;
  if (at == 0 || at > done) return success();
  return Error{"iteration " + number(at) + " is past: " + quoted(application.name) + " has done " + number(done) +
               "; give a later one, or 0 for the next one"};
}

// The application that carries the resize out knows the names. Longer text would not fit into its answer.
Status check_methods(const std::string& methods) {
  constexpr std::size_t longest_methods = 256;
  if (methods.size() <= longest_methods) return success();
  return Error{"methods have " + number(static_cast<std::int64_t>(methods.size())) + " bytes: give names like " +
               quoted("merge/p2p") + ", at most " + number(longest_methods)};
}

// Takes on which nodes the application's processes run. A text that is none changes nothing.
void take_nodes(Application& application, const std::string& nodes) {
  auto reported = node_counts_of(nodes);
  if (reported && !reported.value().empty()) application.reported_nodes = std::move(reported).value();
}

// Returns the method of a reconfiguration in the notation of MALLEABLE.
std::string method_of(const event::Reconfiguration& record) {
  return record.spawn + " " + record.spawn_strategy + ", " + record.redistribution + " " +
         record.redistribution_strategy;
}

}  // namespace

void Resizing::malleable(const model::Member& member, const event::Malleable& said) {
  Malleability& state = member.application->malleability;
  take_nodes(*member.application, said.nodes);
  state.malleable = true;
  state.commanding = member.id;
  state.processes = std::clamp<std::int64_t>(said.processes, 1, model::most_processes);
  state.iteration = std::max<std::int64_t>(0, said.iteration);
  state.sleeping = std::clamp<std::int64_t>(said.sleeping, 0, model::most_processes);
  state.method = said.method;
}

Application* Resizing::subject_of(MemberId asking, const event::Resize& asked) {
  const model::Member* own = cluster_.find(asking);
  return own != nullptr && asked.application.empty() ? own->application : cluster_.find_application(asked.application);
}

Application* Resizing::resize(const Moment& moment, const event::Resize& asked) {
  const MemberId asking = moment.event.origin.member;
  Application* application = subject_of(asking, asked);
  const auto refuse = [&](const Error& why) -> Application* {
    refuse_to(moment, asking, "cannot resize: " + why.text);
    return nullptr;
  };
  if (application == nullptr) return refuse(no_such_application(asked.application));
  const auto processes = processes_after(*application, asked);
  if (!processes) return refuse(processes.error());
  send(moment, *application, asking,
       {{}, processes.value(), asked.at_iteration, asked.places, {}, asked.methods, asked.leave}, {});
  return application;
}

// REFUSED does not name what it refuses, and an application takes it for an answer to its requests for I/O.
void Resizing::refuse_to(const Moment& moment, MemberId asking, const std::string& why) {
  if (cluster_.find(asking) == nullptr) {
    moment.commands.push_back({asking, event::Refused{why}});
    return;
  }
  event::Reconfiguration refusal;
  refusal.reason = why;
  moment.commands.push_back({asking, refusal});
}

SizeRequest Resizing::ask(const Moment& moment, Application& application, std::int64_t processes,
                          std::int64_t at_iteration, const NodeWishes& nodes) {
  const Malleability& state = application.malleability;
  if (!state.malleable || !state.commanding) return {{}, event::because(event::circumstance::nobody_commands)};
  if (is_for_tool(application.id)) return {{}, event::ResizedByTool{state.resizing_to}};
  return {send(moment, application, {}, {{}, processes, at_iteration, nodes.places}, nodes.before), {}};
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

RequestId Resizing::send(const Moment& moment, Application& application, MemberId asked_by, event::Reconfigure command,
                         const std::vector<NodeCount>& before) {
  if (command.leave.empty()) {
    command.leave = text_of(nodes_to_leave(cores_, application, command.processes, before), longest_leave);
  }
  const RequestId request{++requests_made_};
  const ResizeInput input = asked_by ? ResizeInput::tool_asks : ResizeInput::policy_asks;
  const ResizeState next = resize_step(state_of(application.id), input).next;
  application.malleability.resizing_to = command.processes;
  under_way_[application.id] = {request, next, asked_by, command.at_iteration};
  command.request = request;
  command.asked = moment.now;
  moment.commands.push_back({application.malleability.commanding, std::move(command)});
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
  if (processes > state.processes && !gives_out_)
    return Error{"this leader is not the first of the list, so it gives out no cores: " + name + " cannot grow here"};
  if (processes > state.processes) {
    if (const auto exceeded = cores_exceeded(application, processes)) {
      return Error{explain::sentence(*exceeded, application.name)};
    }
  }
  if (const Status ahead = check_iteration(application, asked.at_iteration); !ahead) return ahead.error();
  if (const Status placed = check_places(application, processes, asked.places); !placed) return placed.error();
  if (const Status named = check_methods(asked.methods); !named) return named.error();
  if (const Status left = check_leave(application, processes, asked.leave); !left) return left.error();
  return processes;
}

std::optional<event::CoresExceeded> Resizing::cores_exceeded(const Application& application,
                                                             std::int64_t processes) const {
  // Nodes that are away are not among `cores()`, so what applications have there does not count.
  std::int64_t others = 0;
  for (const auto& [id, other] : cluster_.applications()) {
    if (id == application.id) continue;
    // Cores that another application was given and may still come to use count too.
    const std::int64_t has = std::max(cores_used(other), cores_.of(id));
    others = saturating_sum(others, has - cores_.away_of(id));
  }
  const std::int64_t wanted = processes - std::min(processes, cores_.away_of(application.id));
  if (saturating_sum(wanted, others) <= cores()) return std::nullopt;
  return event::CoresExceeded{processes, cores(), others};
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
    take_nodes(application, record.nodes);
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
  // An application's own request ends with the member that sent it.
  const bool is_leaving = input == ResizeInput::lose && tool == moment.event.origin.member;
  if (apply(application, input) == ResizeAction::give_up && !is_leaving) {
    refuse_to(moment, tool, quoted(application.name) + " " + why);
  }
}

}  // namespace hocket::coordinator
