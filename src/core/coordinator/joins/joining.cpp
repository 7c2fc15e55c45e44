#include "coordinator/joins/joining.hpp"

#include <algorithm>

#include "explain/words.hpp"

namespace hocket::coordinator {
namespace {

using explain::number;

// Largest number of processes to be started at once: each runs on this node, so more is a mistake.
constexpr std::int64_t most_started = 4096;

}  // namespace

void Joining::start(const Moment& moment, const model::Member& member, const event::StartProcesses& asked) {
  const model::Application& application = *member.application;
  const auto refuse = [&](std::string why) {
    moment.commands.push_back({member.id, event::ProcessesReady{asked.request, std::move(why)}});
  };
  if (application.malleability.commanding != member.id) {
    return refuse("START_PROCESSES of a member that did not send the last MALLEABLE: only that member may send it");
  }
  if (asked.count < 1 || asked.count > most_started) {
    return refuse(number(asked.count) + " processes cannot be started: ask for 1 to " + number(most_started));
  }
  const auto other = joins_.find(application.id);
  const JoinTransition step =
      join_step(other == joins_.end() ? JoinState::none : other->second.state, JoinInput::start);
  if (step.action == JoinAction::refuse) {
    return refuse("processes are being started for request " + std::to_string(other->second.request.value) +
                  " already: wait for its RECONFIGURATION, or send STOP_PROCESSES");
  }
  const Time until = moment.now + settings_.join_limit;
  joins_[application.id] = {asked.request, step.next, member.id, asked.count, {}, until};
  due_.emplace(until, application.id);
  event::StartProcesses command = asked;
  command.app = application.id;
  command.node = member.node;
  moment.commands.push_back({{}, std::move(command)});
}

void Joining::ready(const Moment& moment, const model::Member& member, const event::ProcessReady& said) {
  const JoinPlace join = find(member.application->id, said.request);
  if (join == joins_.end()) return;
  Join& at = join->second;
  if (join_step(at.state, JoinInput::ready).action != JoinAction::count) return;
  at.ready.insert(member.id);
  if (static_cast<std::int64_t>(at.ready.size()) >= at.count) apply(moment, join, JoinInput::all_ready);
}

void Joining::stop(const Moment& moment, const model::Member& member, const event::StopProcesses& asked) {
  const JoinPlace join = find(member.application->id, asked.request);
  if (join != joins_.end()) apply(moment, join, JoinInput::stop);
}

void Joining::failed(const Moment& moment, const event::ProcessFailed& failed) {
  const JoinPlace join = find(failed.app, failed.request);
  if (join != joins_.end()) apply(moment, join, JoinInput::fail, failed.reason);
}

void Joining::ended(const Moment& moment, const model::Application& application) {
  const JoinPlace join = joins_.find(application.id);
  if (join != joins_.end()) apply(moment, join, JoinInput::end);
}

void Joining::leave(const Moment& moment, const model::Member& member) {
  const JoinPlace join = joins_.find(member.application->id);
  if (join == joins_.end()) return;
  const bool in_order = std::holds_alternative<event::Bye>(moment.event.body);
  const bool last = member.application->members.size() == 1;
  if (last) return apply(moment, join, JoinInput::abandon);
  if (join->second.asking == member.id) {
    return apply(moment, join, in_order ? JoinInput::hand_over : JoinInput::abandon);
  }
  if (!join->second.ready.contains(member.id)) return;
  apply(moment, join, in_order ? JoinInput::quit : JoinInput::fail, "a joining process ended before it had joined");
}

void Joining::tick(const Moment& moment) {
  while (!due_.empty() && due_.begin()->first <= moment.now) {
    const JoinPlace join = joins_.find(due_.begin()->second);
    apply(moment, join, JoinInput::expire,
          number(static_cast<std::int64_t>(join->second.ready.size())) + " of " + number(join->second.count) +
              " processes were ready after " +
              number(std::chrono::duration_cast<std::chrono::seconds>(settings_.join_limit).count()) +
              " s (join_limit_s of [coordinator] in hocket.toml)");
  }
}

std::optional<Time> Joining::deadline() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

bool Joining::awaits(AppId app, RequestId request) const {
  const auto join = joins_.find(app);
  return join != joins_.end() && join->second.request == request;
}

Joining::JoinPlace Joining::find(AppId app, RequestId request) {
  const JoinPlace join = joins_.find(app);
  return join != joins_.end() && join->second.request == request ? join : joins_.end();
}

void Joining::apply(const Moment& moment, JoinPlace join, JoinInput input, std::string why) {
  Join& at = join->second;
  const JoinTransition step = join_step(at.state, input);
  if (at.state == JoinState::starting && step.next != at.state) due_.erase({at.until, join->first});
  at.state = step.next;
  const bool kills = step.action == JoinAction::kill || step.action == JoinAction::give_up;
  if (kills) moment.commands.push_back({{}, event::StopProcesses{at.request, join->first}});
  const bool is_reported = step.action == JoinAction::tell_ready || step.action == JoinAction::tell_failed ||
                           step.action == JoinAction::give_up;
  if (is_reported) {
    moment.commands.push_back({at.asking, event::ProcessesReady{at.request, std::move(why)}});
  }
  if (at.state == JoinState::none) joins_.erase(join);
}

}  // namespace hocket::coordinator
