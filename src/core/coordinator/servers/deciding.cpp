// The servers policy: what it sees, and what is done of what it wants.
#include "coordinator/servers/servers.hpp"

#include <utility>

#include "explain/words.hpp"

namespace hocket::coordinator {

using policy::ServerChange;

std::vector<policy::ServerStatus> Servers::statuses(Time now) const {
  std::vector<policy::ServerStatus> all;
  all.reserve(entries_.size());
  for (const ServerEntry& entry : entries_) {
    const ServerWork recent = recent_work(entry, now);
    policy::ServerStatus& status = all.emplace_back();
    status.name = entry.said.server;
    status.member = entry.member;
    status.state = name_of(entry.state);
    status.directory = entry.said.directory;
    status.file_system = entry.said.file_system;
    status.node = entry.node;
    status.write_behind = entry.said.write_behind;
    status.queue = entry.queue;
    status.held_bytes = entry.held_bytes;
    status.operations_per_s = static_cast<double>(recent.operations) / to_s(load_window);
    status.bytes_per_s = static_cast<double>(recent.bytes) / to_s(load_window);
    status.busy = recent.service;
    status.last_service = entry.last_service;
    status.slow = detector_.finding(entry.member);
    status.weight = entry.weight;
    status.scheduler = entry.said.scheduler;
    status.forward_queue = entry.forwarding.forward_queue;
  }
  return all;
}

void Servers::decide(const Moment& moment) {
  if (only_grants_) return;
  ask(moment);
  // A server that the policy has set aside is one less to give out.
  if (must_arbitrate()) ask(moment);
}

void Servers::ask(const Moment& moment) {
  const std::vector<policy::ServerStatus> servers = statuses(moment.now);
  const std::vector<policy::AssignedServers> assigned = assignments();
  const std::vector<policy::TunedApplication> tunings = tuned();
  const bool set_changed = std::exchange(decided_set_, set_) != set_;
  const policy::ServerDecision decision = policy_->decide(
      {cluster_, servers, assigned, tunings, moment.now, settings_.arbitration, set_changed}, moment.event);
  std::vector<const ServerChange*> weights, assignments;
  for (const ServerChange& wanted : decision.changes) {
    switch (wanted.action) {
      case ServerChange::Action::assign: assignments.push_back(&wanted); break;
      case ServerChange::Action::tune: tune(moment, wanted); break;
      case ServerChange::Action::weigh: weights.push_back(&wanted); break;
      case ServerChange::Action::schedule: schedule(moment, wanted); break;
      case ServerChange::Action::weigh_application: weigh_application(moment, wanted); break;
      default: change(moment, wanted);
    }
  }
  assign(moment, assignments);
  weigh(moment, weights);
  if (set_changed) publish(moment);  // a new application may have got no map yet
}

void Servers::set_policy(const Moment& moment, const policy::ServerPolicy& policy) {
  if (policy_ == &policy) return;
  policy_ = &policy;
  ++set_;
  ignored_.clear();
  weighed_.reset();
  for (ServerEntry& entry : entries_) {
    if (std::exchange(entry.by_policy, false)) apply(entry, ServerInput::add, moment.now);
    entry.weight = event::full_weight;
    entry.scheduled.reset();
    entry.refused.clear();
    if (entry.member && entry.choice().by == event::chooser::by_policy) schedule_by_default(moment, entry);
  }
  for (auto& [app, map] : maps_) {
    map.ignored.clear();
    if (map.weight_by == event::chooser::by_policy) weigh_by_default(moment, *cluster_.find(app), map);
    if (!map.by_hand) assign(map, {});
    map.reassigned |= map.tuning.any();
    map.tuning = {};
    map.said = {};
  }
  publish(moment);
}

// ---- one change ----------------------------------------------------------------------------------------------------

std::optional<event::Reason> Servers::obstacle(const ServerEntry* entry, const ServerChange& change, Time now) const {
  const ServerState state = state_of(entry);
  if (server_step(state, ServerInput::add).action == ServerAction::refuse) return event::ServerGone{change.server};
  const bool leaves = change.action != ServerChange::Action::add;
  if (leaves && state == ServerState::up && up() == 1) return event::because(event::circumstance::last_server);
  if (entry->by_hand) return event::because(event::circumstance::drained_by_hand);
  // A server that was found slow is set aside at once.
  if (change.action == ServerChange::Action::set_aside || !entry->changed) return std::nullopt;
  const Duration since = now - *entry->changed;
  if (since >= between_changes) return std::nullopt;
  return event::ChangedLately{to_s(since), to_s(between_changes)};
}

void Servers::change(const Moment& moment, const ServerChange& change) {
  ServerEntry* entry = find(change.server);
  const bool adds = change.action == ServerChange::Action::add;
  const bool sets_aside = change.action == ServerChange::Action::set_aside;
  const ServerInput input = adds ? ServerInput::add : sets_aside ? slow_input() : ServerInput::drain;
  const ServerStep step = server_step(state_of(entry), input);
  if (step.next == state_of(entry) && step.action != ServerAction::refuse) return;  // it is so already
  if (auto why = obstacle(entry, change, moment.now)) {
    return ignore(moment, entry, change, *std::move(why));
  }
  entry->changed = moment.now;
  ignored_.erase(change.server);
  if (sets_aside) {
    hold_off(moment, *entry, change.slow);
    return publish(moment);
  }
  if (step.action == ServerAction::vouch) entry->hold_off = {};
  entry->by_policy = !adds;
  apply(*entry, input, moment.now);
  publish(moment);
  tell(moment, change.server, adds ? "add" : "drain", change.text, event::ServersInUse{names_in_use(), list_.epoch},
       {});
}

void Servers::ignore(const Moment& moment, const ServerEntry* entry, const ServerChange& change,
                     event::Reason obstacle) {
  // A policy may make up any number of names of servers. They share what was said.
  std::set<std::string>& said = ignored_[entry == nullptr ? std::string{} : change.server];
  ignore(moment, change.server.substr(0, longest_name), said, change.text, std::move(obstacle));
}

// ---- weights -------------------------------------------------------------------------------------------------------

std::optional<event::Reason> Servers::obstacle_to_weight(const ServerEntry* entry, const ServerChange& change,
                                                         Time now) const {
  const ServerState state = state_of(entry);
  if (server_step(state, ServerInput::add).action == ServerAction::refuse)
    return event::ServerGone{change.server.substr(0, longest_name)};
  if (change.weight < 1 || change.weight > event::full_weight)
    return event::InvalidValue{"weight", explain::number(change.weight), 1, event::full_weight};
  if (weighed_ && now - *weighed_ < between_changes) return event::because(event::circumstance::weighed_lately);
  return std::nullopt;
}

void Servers::weigh(const Moment& moment, const std::vector<const ServerChange*>& changes) {
  std::vector<const ServerChange*> done;
  for (const ServerChange* const wanted : changes) {
    ServerEntry* const entry = find(wanted->server);
    if (entry != nullptr && entry->weight == wanted->weight) continue;  // it is so already
    if (auto why = obstacle_to_weight(entry, *wanted, moment.now)) {
      ignore(moment, entry, *wanted, *std::move(why));
      continue;
    }
    entry->weight = static_cast<int>(wanted->weight);
    done.push_back(wanted);
  }
  if (done.empty()) return;
  weighed_ = moment.now;
  publish(moment);
  for (const ServerChange* const one : done) {
    ignored_.erase(one->server);
    tell(moment, one->server, "weigh", one->text, event::ServersInUse{names_in_use(), list_.epoch}, {});
  }
}

// ---- what people are told ------------------------------------------------------------------------------------------

void Servers::tell(const Moment& moment, std::string about, std::string_view action, std::string text,
                   event::Reason reason, event::Reason obstacle) {
  event::Decision decision;
  decision.number = ++decisions_;
  decision.policy = policy_->name;
  decision.decided_for = std::move(about);
  decision.action = action;
  decision.text = std::move(text);
  decision.reason = std::move(reason);
  decision.obstacle = std::move(obstacle);
  moment.commands.push_back({{}, std::move(decision)});
}

void Servers::ignore(const Moment& moment, const std::string& about, std::set<std::string>& said, std::string text,
                     event::Reason obstacle) {
  // The kind of the obstacle, because its numbers differ each time.
  const auto* circumstance = std::get_if<event::Circumstance>(&obstacle);
  const auto* invalid = std::get_if<event::InvalidValue>(&obstacle);
  const std::string kind = circumstance != nullptr ? circumstance->what
                           : invalid != nullptr    ? invalid->what
                                                   : std::to_string(obstacle.index());
  if (!said.insert(kind).second) return;
  tell(moment, about, "leave", std::move(text), {}, std::move(obstacle));
}

namespace {

// Cuts a long list off, because a DECISION and a listing must fit into a frame.
std::string listed(const std::vector<event::ServerMap::MappedServer>& servers) {
  constexpr std::size_t longest = 1000;
  std::string names;
  for (const event::ServerMap::MappedServer& one : servers) {
    if (one.set_aside) continue;
    if (names.size() > longest) return names + ", …";
    names.append(names.empty() ? "" : ", ").append(one.name);
    if (one.weight != event::full_weight)
      names += " (weight " + std::to_string(one.weight) + " of " + std::to_string(event::full_weight) + ")";
  }
  return names.empty() ? "none" : names;
}

}  // namespace

std::string Servers::names_in_use() const { return listed(in_map()); }
std::string Servers::names_in_use(const ApplicationMap& map) const { return listed(map_of(map, in_map())); }

}  // namespace hocket::coordinator
