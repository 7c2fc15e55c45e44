#include "coordinator/servers/servers.hpp"

#include <algorithm>
#include <utility>

#include "base/saturating.hpp"
#include "explain/words.hpp"

namespace hocket::coordinator {
namespace {

using explain::number;
using explain::quoted;

// Bound on the reports kept. It exceeds what a server sends in that window if it keeps to one report each 50 ms.
constexpr std::size_t most_recent = 64;
constexpr Duration longest_heartbeat = std::chrono::hours{1};

constexpr std::string_view changes_no_map =
    "this leader is not the first of the list, so it changes no server map: ask the first one";

// Returns " on NODE", if the node is known.
std::string on(const std::string& node) { return node.empty() ? node : " on " + node; }

// Adds a report of forwarded calls to the sums.
void count_forwarded(event::ServerLoad& sums, const event::ServerLoad& load) {
  const auto add = [](std::int64_t& sum, std::int64_t more) {
    sum = saturating_sum(sum, std::max<std::int64_t>(more, 0));
  };
  add(sums.forwarded, load.forwarded);
  add(sums.forwarded_bytes, load.forwarded_bytes);
  add(sums.system_calls, load.system_calls);
  add(sums.merged, load.merged);
  sums.forward_waited = saturating_sum(sums.forward_waited, std::max(load.forward_waited, Duration::zero()));
  sums.forward_queue = load.forward_queue;
  if (load.forward_shares.empty()) return;
  sums.forward_shares = load.forward_shares;
  sums.forward_weights = load.forward_weights;
}

}  // namespace

bool Servers::is_name(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= longest_name && name.find_first_not_of(allowed) == std::string_view::npos;
}

Servers::ServerEntry* Servers::find(std::string_view name) {
  const auto found = std::ranges::find_if(entries_, [&](const ServerEntry& e) { return e.said.server == name; });
  return found == entries_.end() ? nullptr : &*found;
}

const Servers::ServerEntry* Servers::find(std::string_view name) const {
  const auto found = std::ranges::find_if(entries_, [&](const ServerEntry& e) { return e.said.server == name; });
  return found == entries_.end() ? nullptr : &*found;
}

Servers::ServerEntry* Servers::find(MemberId member) {
  const auto found = std::ranges::find_if(entries_, [&](const ServerEntry& e) { return member && e.member == member; });
  return found == entries_.end() ? nullptr : &*found;
}

const Servers::ServerEntry* Servers::find(std::string_view name, std::int64_t pid, std::string_view instance) const {
  const ServerEntry* const entry = find(name);
  return entry != nullptr && entry->said.pid == pid && entry->said.instance == instance ? entry : nullptr;
}

std::size_t Servers::up() const {
  return static_cast<std::size_t>(std::ranges::count(entries_, ServerState::up, &ServerEntry::state));
}

std::string Servers::what_is_wrong(const Moment& moment, const event::Server& server) {
  const std::string shown = quoted(server.server.substr(0, longest_name));
  if (!is_name(server.server)) {
    return "SERVER: " + shown + " is no name of a server: use letters, digits, '.', '_' and '-', at most 64";
  }
  if (find(moment.event.origin.member) != nullptr) {
    return "SERVER: a member can be one server only, and sends SERVER once";
  }
  const ServerEntry* same = find(server.server);
  // Its node was cut off, and has come back: nobody heard its heartbeats, but it runs.
  const bool returns = same != nullptr && same->state == ServerState::hung && !same->member &&
                       !server.instance.empty() && same->said.instance == server.instance;
  if (!returns && server_step(state_of(same), ServerInput::arrive).action == ServerAction::refuse) {
    return "SERVER: a server called " + shown + " runs already (pid " + number(same->said.pid) + on(same->node) +
           "): choose another name";
  }
  // What that one holds is for the same bytes of files as what this one would hold.
  if (same != nullptr && same->storing == StoringState::cut && same->said.instance != server.instance) {
    return "SERVER: a server called " + shown + " was lost (pid " + number(same->said.pid) + on(same->node) +
           ") and may still write: choose another name, or wait until its process has ended";
  }
  if (!server.directory.starts_with('/')) return "SERVER: 'directory' of " + shown + " is no absolute path";
  if (server.addresses.empty() || server.addresses.find('\n') != std::string::npos) {
    return "SERVER: 'addresses' of " + shown + " is not one line with at least one address";
  }
  std::vector<event::ServerMap::MappedServer> all;
  for (const ServerEntry& entry : entries_) {
    if (entry.member) all.push_back({entry.said.server, entry.said.directory, entry.said.addresses, true, 1});
  }
  all.push_back({server.server, server.directory, server.addresses, true, 1});
  if (event::text_of(all).size() > event::longest_server_map || all.size() > most) {
    return "SERVER: " + shown + " is one too many: the map would not fit a message; stop others first";
  }
  return {};
}

void Servers::make_room() {
  if (entries_.size() < most) return;
  entries_.erase(std::ranges::find(entries_, ServerState::lost, &ServerEntry::state));
}

void Servers::arrive(const Moment& moment, const event::Server& server) {
  if (only_grants_) return refuse(moment, "SERVER: " + std::string{changes_no_map});
  if (std::string wrong = what_is_wrong(moment, server); !wrong.empty()) return refuse(moment, std::move(wrong));
  if (const ServerEntry* lost = find(server.server)) entries_.erase(entries_.begin() + (lost - entries_.data()));
  make_room();
  ServerEntry& entry = entries_.emplace_back();
  entry.said = server;
  entry.said.instance.resize(std::min(entry.said.instance.size(), longest_name));
  entry.node = moment.event.origin.node;
  entry.member = moment.event.origin.member;
  entry.said.heartbeat = std::clamp<Duration>(server.heartbeat, {}, longest_heartbeat);
  if (server.file_system.size() > event::longest_file_system) entry.said.file_system.clear();
  entry.heard = moment.now;
  apply(entry, ServerInput::arrive, moment.now);
  publish(moment);
  if (!is_as_configured(entry)) schedule_by_default(moment, entry);
  tell_weights(moment, entry);
}

// An operator's choice stays, also when hocketd starts anew. A policy's and a configuration's are of that hocketd.
bool Servers::is_as_configured(const ServerEntry& entry) const {
  const std::string& by = entry.said.scheduler_by;
  if (entry.said.scheduler.empty() || by == event::chooser::by_operator) return true;
  const std::string& configured = settings_.request_scheduler;
  if (configured.empty()) return by == event::chooser::by_default;
  return by == event::chooser::by_configuration && entry.said.scheduler == configured;
}

void Servers::apply(ServerEntry& entry, ServerInput input, Time now) {
  const ServerState next = server_step(entry.state, input).next;
  if (next == entry.state) return;
  if (next == ServerState::up || entry.state == ServerState::up) ++set_;
  if (entry.state == ServerState::up) detector_.leave(entry.member);
  if (next == ServerState::hung) entry.drained = entry.state == ServerState::drained;
  if (next != ServerState::hung) entry.in_map = next == ServerState::up;
  entry.state = next;
  entry.since = now;
  entry.epoch = 0;                                    // until `publish`
  if (next == ServerState::drained) entry.told = {};  // so that it is asked anew
  entry.moves_data_sets = next == ServerState::drained && entry.said.exchange_bytes > 0;
  if (next == ServerState::up) detector_.enter(entry.member);
  users_changed_ |= next == ServerState::up;
}

void Servers::load(const Moment& moment, const event::ServerLoad& load) {
  ServerEntry* entry = find(moment.event.origin.member);
  if (entry == nullptr) return;
  entry->heard = moment.now;
  if (entry->state == ServerState::hung) {
    apply(*entry, entry->drained ? ServerInput::beat_drained : ServerInput::beat, moment.now);
    publish(moment);
  }
  const ServerWork work{moment.now, std::max<std::int64_t>(load.operations, 0), std::max<std::int64_t>(load.bytes, 0),
                        std::max(load.service, Duration::zero())};
  entry->sums.operations = saturating_sum(entry->sums.operations, work.operations);
  entry->sums.bytes = saturating_sum(entry->sums.bytes, work.bytes);
  entry->sums.service = saturating_sum(entry->sums.service, work.service);
  entry->queue = load.queue;
  entry->held_bytes = load.held_bytes;
  count_forwarded(entry->forwarding, load);
  if (work.operations > 0) {
    entry->last_service = work.service / work.operations;
    entry->recent.push_back(work);
  }
  while (!entry->recent.empty() && moment.now - entry->recent.front().at >= load_window) entry->recent.pop_front();
  if (entry->recent.size() > most_recent) entry->recent.pop_front();
  detector_.report(entry->member, load, moment.now);
}

void Servers::hold_off(const Moment& moment, ServerEntry& entry, const std::optional<SlowServers::Finding>& finding) {
  entry.hold_off = model::next_hold_off(settings_.slow_server_hold_off, entry.hold_off, entry.back, moment.now);
  entry.back = moment.now + entry.hold_off;
  apply(entry, slow_input(), moment.now);

  event::SlowIoServer told;
  told.server = entry.said.server;
  told.hold_off = entry.hold_off;
  if (finding) {
    told.service = finding->service;
    told.peers = finding->peers;
    told.reports = SlowServers::running;
  }
  moment.commands.push_back({{}, std::move(told)});
}

void Servers::told_slow(const Moment& moment, const event::SlowIoServer& told) {
  if (only_grants_) return refuse(moment, "SLOW_IO_SERVER: " + std::string{changes_no_map});
  ServerEntry* entry = find(told.server);
  const ServerAction action = server_step(state_of(entry), slow_input()).action;
  if (action == ServerAction::refuse && state_of(entry) == ServerState::up) {
    return refuse(moment, "SLOW_IO_SERVER: " + quoted(told.server) + " is the last server of the map and stays");
  }
  if (action == ServerAction::refuse) {
    return refuse(moment,
                  "SLOW_IO_SERVER: no server called " + quoted(told.server) + " runs; 'hocket servers' lists them");
  }
  if (action != ServerAction::hold_off) return;
  hold_off(moment, *entry, std::nullopt);
  publish(moment);
}

void Servers::set(const Moment& moment, const event::SetServer& set) {
  if (only_grants_) return refuse(moment, "SET_SERVER: " + std::string{changes_no_map});
  if (set.action == "assign") return assign_by_hand(moment, set);
  if (set.action == "scheduler") return schedule_by_hand(moment, set);
  if (set.action == "weight") return weigh_by_hand(moment, set);
  if (set.action == "ended") return end_by_hand(moment, set);
  ServerEntry* entry = find(set.server);
  const bool adds = set.action == "add";
  if (!adds && set.action != "drain") {
    return refuse(moment, "SET_SERVER: unknown action " + quoted(set.action) +
                              ": \"drain\", \"add\", \"ended\", \"assign\", \"scheduler\" or \"weight\"");
  }
  if (entry == nullptr) {
    return refuse(moment, "no server is called " + quoted(set.server) + "; 'hocket servers' lists them");
  }
  const ServerInput input = adds ? ServerInput::add : ServerInput::drain;
  const ServerStep step = server_step(entry->state, input);
  if (step.action == ServerAction::refuse) {
    const bool hangs = entry->state == ServerState::hung;
    return refuse(moment, quoted(set.server) + (hangs ? " is hung, and leaves the map when its process has ended"
                                                      : " is lost: start a server again"));
  }
  entry->by_hand = !adds;
  entry->by_policy = false;
  if (step.next == entry->state) return;
  if (step.action == ServerAction::vouch) entry->hold_off = {};
  apply(*entry, input, moment.now);
  publish(moment);
}

// Nobody can ask a node that has failed for good.
void Servers::end_by_hand(const Moment& moment, const event::SetServer& set) {
  const ServerEntry* const entry = find(set.server);
  const bool is_awaited =
      entry != nullptr && may_still_write(entry->said.server, entry->said.pid, entry->said.instance);
  if (!is_awaited)
    return refuse(moment, quoted(set.server) + " is no server whose end is waited for; 'hocket servers' lists them");
  ended(moment, {entry->said.server, entry->said.pid, entry->said.instance});
}

void Servers::leave(const Moment& moment, AppId app) {
  forget(moment.event.origin.member, app);
  ServerEntry* entry = find(moment.event.origin.member);
  if (entry == nullptr) return publish(moment);  // the maps of those that stay may be alike again
  const bool in_order = std::holds_alternative<event::Bye>(moment.event.body);
  const ServerInput input = in_order ? ServerInput::leave : ServerInput::lose;
  const ServerAction action = server_step(entry->state, input).action;
  apply(*entry, input, moment.now);
  store(moment, *entry, in_order ? StoringInput::end : StoringInput::lose);
  entry->member = {};
  entry->queue = entry->held_bytes = entry->forwarding.forward_queue = 0;
  entry->recent.clear();
  if (action == ServerAction::forget) entries_.erase(entries_.begin() + (entry - entries_.data()));
  publish(moment);
}

void Servers::ended(const Moment& moment, const event::ServerEnded& ended) {
  ServerEntry* entry = find(ended.server);
  // A server that was started again under the name is another process, perhaps on another node.
  if (entry == nullptr || entry != find(ended.server, ended.pid, ended.instance)) return;
  apply(*entry, ServerInput::end, moment.now);
  store(moment, *entry, StoringInput::end);
  entry->member = {};
  entry->queue = entry->held_bytes = entry->forwarding.forward_queue = 0;
  entry->recent.clear();
  publish(moment);
}

bool Servers::awaits_end(std::string_view server, std::int64_t pid, std::string_view instance) const {
  const ServerEntry* const entry = find(server, pid, instance);
  return entry != nullptr && !(entry->state == ServerState::lost && entry->storing == StoringState::clear);
}

bool Servers::may_still_write(std::string_view server, std::int64_t pid, std::string_view instance) const {
  const ServerEntry* const entry = find(server, pid, instance);
  return entry != nullptr && (entry->state == ServerState::hung ||
                              (entry->state == ServerState::lost && entry->storing == StoringState::cut));
}

// ---- what time shows -----------------------------------------------------------------------------------------------

std::optional<Time> Servers::silent_at(const ServerEntry& entry) {
  const bool may_hang = server_step(entry.state, ServerInput::silent).action == ServerAction::kill;
  if (!may_hang || entry.said.heartbeat == Duration::zero()) return std::nullopt;
  return entry.heard + missed_heartbeats * entry.said.heartbeat;
}

std::optional<Time> Servers::cut_at(const ServerEntry& entry) {
  if (entry.state != ServerState::lost || entry.storing != StoringState::cut || entry.told_cut) return std::nullopt;
  return entry.since + cut_limit;
}

void Servers::tick(const Moment& moment) {
  find_hung(moment);  // first, so that none returns to the map that is hung
  for (ServerEntry& entry : entries_) {
    if (entry.back <= moment.now) apply(entry, ServerInput::recover, moment.now);
  }
  publish(moment);
}

void Servers::find_hung(const Moment& moment) {
  const bool stood_still = std::ranges::any_of(entries_, [&](const ServerEntry& entry) {
    const auto due = silent_at(entry);
    return due && moment.now - *due > standstill;
  });
  for (ServerEntry& entry : entries_) {
    if (stood_still) entry.heard = moment.now;
    if (const auto due = silent_at(entry); due && *due <= moment.now) {
      apply(entry, ServerInput::silent, moment.now);
      kill(moment, entry);
    }
    if (const auto due = cut_at(entry); due && *due <= moment.now) {
      entry.told_cut = true;
      kill(moment, entry);
    }
  }
}

void Servers::kill(const Moment& moment, const ServerEntry& entry) const {
  moment.commands.push_back(
      {{}, event::HungIoServer{entry.said.server, entry.said.pid, moment.now - entry.heard, entry.said.instance}});
}

std::optional<Time> Servers::deadline() const {
  std::optional<Time> next;
  const auto at_latest = [&next](std::optional<Time> time) {
    if (time) next = std::min(next.value_or(Time::max()), *time);
  };
  for (const ServerEntry& entry : entries_) {
    if (entry.state == ServerState::slow) at_latest(entry.back);
    at_latest(silent_at(entry));
    at_latest(cut_at(entry));
  }
  return next;
}

// ---- listings -----------------------------------------------------------------------------------------------------

Servers::ServerWork Servers::recent_work(const ServerEntry& entry, Time now) {
  ServerWork sum{};
  for (const ServerWork& work : entry.recent) {
    if (now - work.at >= load_window) continue;
    sum.operations = saturating_sum(sum.operations, work.operations);
    sum.bytes = saturating_sum(sum.bytes, work.bytes);
    sum.service = saturating_sum(sum.service, work.service);
  }
  return sum;
}

std::vector<event::IoServer> Servers::describe(Time now) const {
  std::vector<event::IoServer> rows;
  for (const ServerEntry& entry : entries_) {
    event::IoServer& row = rows.emplace_back();
    row.server = entry.said.server;
    row.node = entry.node;
    row.instance = entry.said.instance;
    row.state = name_of(entry.state);
    const auto mapped = std::ranges::find_if(handed_, [&](const event::ServerMap::MappedServer& one) {
      return one.name == entry.said.server && one.addresses == entry.said.addresses && !one.set_aside;
    });
    row.in_map = mapped != handed_.end();
    row.weight = row.in_map ? mapped->weight : entry.weight;
    row.since = entry.since;
    row.epoch = entry.epoch;
    row.directory = entry.said.directory;
    row.addresses = entry.said.addresses;
    row.pid = entry.said.pid;
    row.buffer_bytes = entry.said.buffer_bytes;
    row.write_behind = entry.said.write_behind;
    row.operations = entry.sums.operations;
    row.bytes = entry.sums.bytes;
    row.service = entry.sums.service;
    row.queue = entry.queue;
    row.held_bytes = entry.held_bytes;
    const ServerWork recent = recent_work(entry, now);
    row.operations_per_s = static_cast<double>(recent.operations) / to_s(load_window);
    row.bytes_per_s = static_cast<double>(recent.bytes) / to_s(load_window);
    row.busy = recent.service;
    row.last_service = entry.last_service;
    if (entry.state == ServerState::slow) row.back = entry.back;
    row.scheduler = entry.said.scheduler;
    row.forwarded = entry.forwarding.forwarded;
    row.forwarded_bytes = entry.forwarding.forwarded_bytes;
    row.system_calls = entry.forwarding.system_calls;
    row.merged = entry.forwarding.merged;
    row.forward_waited = entry.forwarding.forward_waited;
    row.forward_queue = entry.forwarding.forward_queue;
    row.forward_shares = entry.forwarding.forward_shares;
    row.forward_weights = entry.forwarding.forward_weights;
    row.scheduler_by = entry.said.scheduler_by;
    row.moves_data_sets = entry.moves_data_sets;
    if (entry.moves_data_sets && entry.left.epoch == entry.told.epoch) {
      row.data_sets_left = entry.left.kept;
      row.data_set_bytes_left = entry.left.bytes;
      row.data_sets_text = entry.left.text;
    }
  }
  return rows;
}

void Servers::refuse(const Moment& moment, std::string text) {
  moment.commands.push_back({moment.event.origin.member, event::Refused{std::move(text)}});
}

}  // namespace hocket::coordinator
