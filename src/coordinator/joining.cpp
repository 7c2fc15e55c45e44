#include "coordinator/joining.hpp"

#include <algorithm>

#include "coordinator/words.hpp"

namespace hocket::coordinator {
namespace {

// Largest number of processes to be started at once: each runs on this node, so more is a mistake.
constexpr std::int64_t most_started = 4096;

}  // namespace

void Joining::start(const Moment& moment, const model::Member& member, const event::StartProcesses& asked) {
  const model::Application& application = *member.application;
  const auto refuse = [&](std::string why) {
    moment.commands.push_back({member.id, event::ProcessesReady{asked.request, std::move(why)}});
  };
  if (application.malleability.commanding != member.id) {
    return refuse("START_PROCESSES of a member that did not say MALLEABLE last: only that one may ask");
  }
  if (asked.count < 1 || asked.count > most_started) {
    return refuse(number(asked.count) + " processes cannot be started: ask for 1 to " + number(most_started));
  }
  if (const auto other = joins_.find(application.id); other != joins_.end()) {
    return refuse("processes are being started for request " + std::to_string(other->second.request.value) +
                  " already: wait for its RECONFIGURATION, or send STOP_PROCESSES");
  }
  const Time until = moment.now + settings_.join_limit;
  joins_[application.id] = {asked.request, member.id, asked.count, {}, until};
  due_.emplace(until, application.id);
  event::StartProcesses command = asked;
  command.app = application.id;
  moment.commands.push_back({{}, std::move(command)});
}

void Joining::ready(const Moment& moment, const model::Member& member, const event::ProcessReady& said) {
  const Place join = find(member.application->id, said.request);
  if (join == joins_.end() || join->second.all_ready()) return;
  join->second.ready.insert(member.id);
  if (!join->second.all_ready()) return;
  due_.erase({join->second.until, join->first});
  moment.commands.push_back({join->second.asking, event::ProcessesReady{said.request, {}}});
}

void Joining::stop(const Moment& moment, const model::Member& member, const event::StopProcesses& asked) {
  const Place join = find(member.application->id, asked.request);
  if (join == joins_.end()) return;
  moment.commands.push_back({{}, event::StopProcesses{asked.request, join->first}});
  forget(join);
}

void Joining::failed(const Moment& moment, const event::ProcessFailed& failed) {
  const Place join = find(failed.app, failed.request);
  if (join != joins_.end()) give_up(moment, join, failed.reason);
}

void Joining::ended(const Moment& moment, const model::Application& application) {
  const Place join = joins_.find(application.id);
  if (join == joins_.end()) return;
  // If all were ready, the application has informed them: they joined or end by themselves.
  if (!join->second.all_ready()) {
    moment.commands.push_back({{}, event::StopProcesses{join->second.request, application.id}});
  }
  forget(join);
}

void Joining::leave(const Moment& moment, const model::Member& member) {
  const Place join = joins_.find(member.application->id);
  if (join == joins_.end()) return;
  if (join->second.asking == member.id && std::holds_alternative<event::Bye>(moment.event.body) &&
      join->second.all_ready() && member.application->members.size() > 1) {
    return;  // it left to its successors, which are about to report
  }
  if (join->second.asking == member.id || member.application->members.size() == 1) {
    moment.commands.push_back({{}, event::StopProcesses{join->second.request, join->first}});
    return forget(join);
  }
  if (!join->second.ready.contains(member.id)) return;
  if (join->second.all_ready() && std::holds_alternative<event::Bye>(moment.event.body)) return;  // was not taken in
  give_up(moment, join, "a process that was to join ended before it did");
}

void Joining::tick(const Moment& moment) {
  while (!due_.empty() && due_.begin()->first <= moment.now) {
    const Place join = joins_.find(due_.begin()->second);
    give_up(moment, join,
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

Joining::Place Joining::find(AppId app, RequestId request) {
  const Place join = joins_.find(app);
  return join != joins_.end() && join->second.request == request ? join : joins_.end();
}

void Joining::give_up(const Moment& moment, Place join, std::string why) {
  Join& given_up = join->second;
  if (given_up.failed) return;
  given_up.failed = true;
  // If all are ready, the application may be in MPI_Comm_accept with any of them, and its MPI may not survive the kill
  // of that one. Processes that it does not take in end by themselves. If the application dies first, they are stopped
  // with it.
  const bool stops = !given_up.all_ready();
  if (stops) moment.commands.push_back({{}, event::StopProcesses{given_up.request, join->first}});
  moment.commands.push_back({given_up.asking, event::ProcessesReady{given_up.request, std::move(why)}});
  if (stops) forget(join);
}

void Joining::forget(Place join) {
  due_.erase({join->second.until, join->first});
  joins_.erase(join);
}

}  // namespace hocket::coordinator
