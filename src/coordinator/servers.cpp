#include "coordinator/servers.hpp"

#include <algorithm>
#include <utility>

#include "base/saturating.hpp"
#include "coordinator/words.hpp"

namespace hocket::coordinator {
namespace {

// The load in listings covers this window.
constexpr Duration load_window = std::chrono::seconds{1};
// Bound on the reports kept. It exceeds what a server sends in that window if it keeps to one report each 50 ms.
constexpr std::size_t most_recent = 64;
constexpr std::size_t longest_name = 64;

bool is_name(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= longest_name && name.find_first_not_of(allowed) == std::string_view::npos;
}

std::string milliseconds_text(Duration d) {
  const auto microseconds = d.count() / 1000;
  const std::string rest = number(microseconds % 1000);
  return number(microseconds / 1000) + "." + std::string(3 - rest.size(), '0') + rest + " ms";
}

}  // namespace

std::string_view Servers::name_of(State state) {
  switch (state) {
    case State::up: return "up";
    case State::drained: return "drained";
    case State::slow: return "slow";
    case State::lost: return "lost";
  }
  return "";
}

Servers::Entry* Servers::find(std::string_view name) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& e) { return e.said.server == name; });
  return found == entries_.end() ? nullptr : &*found;
}

Servers::Entry* Servers::find(MemberId member) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& e) { return member && e.member == member; });
  return found == entries_.end() ? nullptr : &*found;
}

std::size_t Servers::up() const {
  return static_cast<std::size_t>(std::ranges::count(entries_, State::up, &Entry::state));
}

std::string Servers::what_is_wrong(const Moment& moment, const event::Server& server) {
  const std::string shown = quoted(server.server.substr(0, longest_name));
  if (!is_name(server.server)) {
    return "SERVER: " + shown + " is no name of a server: use letters, digits, '.', '_' and '-', at most 64";
  }
  if (find(moment.event.origin.member) != nullptr) return "SERVER: a member is one server and says so once";
  const Entry* same = find(server.server);
  if (same != nullptr && same->state != State::lost) {
    return "SERVER: a server called " + shown + " runs already (pid " + number(same->said.pid) +
           "): choose another name";
  }
  if (!server.directory.starts_with('/')) return "SERVER: 'directory' of " + shown + " is no absolute path";
  if (server.addresses.empty() || server.addresses.find('\n') != std::string::npos) {
    return "SERVER: 'addresses' of " + shown + " is not one line with an address at least";
  }
  std::vector<event::ServerMap::Server> all;
  for (const Entry& entry : entries_) {
    if (entry.member) all.push_back({entry.said.server, entry.said.directory, entry.said.addresses});
  }
  all.push_back({server.server, server.directory, server.addresses});
  if (event::text_of(all).size() > event::longest_server_map || all.size() > most) {
    return "SERVER: " + shown + " is one too many: the map would not fit a message; stop others first";
  }
  return {};
}

void Servers::make_room() {
  if (entries_.size() < most) return;
  entries_.erase(std::ranges::find(entries_, State::lost, &Entry::state));
}

void Servers::arrive(const Moment& moment, const event::Server& server) {
  if (std::string wrong = what_is_wrong(moment, server); !wrong.empty()) return refuse(moment, std::move(wrong));
  if (const Entry* lost = find(server.server)) entries_.erase(entries_.begin() + (lost - entries_.data()));
  make_room();
  Entry& entry = entries_.emplace_back();
  entry.said = server;
  entry.member = moment.event.origin.member;
  put(entry, State::up, moment.now);
  publish(moment);
}

void Servers::put(Entry& entry, State state, Time now) {
  if (entry.state == State::up) detector_.leave(entry.member);
  entry.state = state;
  entry.since = now;
  entry.epoch = 0;  // until `publish`
  if (state == State::up) detector_.enter(entry.member);
}

void Servers::load(const Moment& moment, const event::ServerLoad& load) {
  Entry* entry = find(moment.event.origin.member);
  if (entry == nullptr) return;
  const Work work{moment.now, std::max<std::int64_t>(load.operations, 0), std::max<std::int64_t>(load.bytes, 0),
                  std::max(load.service, Duration::zero())};
  entry->sums.operations = saturating_sum(entry->sums.operations, work.operations);
  entry->sums.bytes = saturating_sum(entry->sums.bytes, work.bytes);
  entry->sums.service = saturating_sum(entry->sums.service, work.service);
  entry->queue = load.queue;
  entry->held_bytes = load.held_bytes;
  if (work.operations > 0) {
    entry->last_service = work.service / work.operations;
    entry->recent.push_back(work);
  }
  while (!entry->recent.empty() && moment.now - entry->recent.front().at >= load_window) entry->recent.pop_front();
  if (entry->recent.size() > most_recent) entry->recent.pop_front();
  const auto finding = detector_.report(entry->member, load, moment.now);
  if (finding && found_slow(moment, *entry, finding)) publish(moment);
}

// A server that is the last of the map stays.
bool Servers::found_slow(const Moment& moment, Entry& entry, const std::optional<SlowServers::Finding>& finding) {
  if (entry.state != State::up || up() < 2) return false;
  const Duration first = settings_.slow_server_hold_off;
  const bool again = entry.hold_off > Duration::zero() && moment.now - entry.back < 4 * entry.hold_off;
  entry.hold_off = again ? std::min(2 * entry.hold_off, std::max(first, longest_hold_off)) : first;
  entry.back = moment.now + entry.hold_off;
  put(entry, State::slow, moment.now);

  event::SlowIoServer told;
  told.server = entry.said.server;
  told.hold_off = entry.hold_off;
  if (finding) {
    told.service = finding->service;
    told.peers = finding->peers;
    told.reports = SlowServers::running;
    told.text = told.server + " takes " + milliseconds_text(finding->service) + " for an operation, its peers " +
                milliseconds_text(finding->peers);
  } else {
    told.text = "a monitor says that " + told.server + " is slow";
  }
  told.text += ": out of the map, and tried again in " + seconds_text(to_s(entry.hold_off));
  moment.commands.push_back({{}, std::move(told)});
  return true;
}

void Servers::told_slow(const Moment& moment, const event::SlowIoServer& told) {
  Entry* entry = find(told.server);
  if (entry == nullptr || entry->state == State::lost) {
    return refuse(moment,
                  "SLOW_IO_SERVER: no server called " + quoted(told.server) + " runs; 'hocket servers' lists them");
  }
  if (entry->state != State::up) return;
  if (!found_slow(moment, *entry, std::nullopt)) {
    return refuse(moment, "SLOW_IO_SERVER: " + quoted(told.server) + " is the last server of the map and stays");
  }
  publish(moment);
}

void Servers::set(const Moment& moment, const event::SetServer& set) {
  Entry* entry = find(set.server);
  const bool adds = set.action == "add";
  if (!adds && set.action != "drain") {
    return refuse(moment, "SET_SERVER: unknown action " + quoted(set.action) + ": \"drain\" or \"add\"");
  }
  if (entry == nullptr) {
    return refuse(moment, "no server is called " + quoted(set.server) + "; 'hocket servers' lists them");
  }
  if (entry->state == State::lost) return refuse(moment, quoted(set.server) + " is lost: start a server again");
  const State wanted = adds ? State::up : State::drained;
  if (entry->state == wanted) return;
  if (adds) entry->hold_off = {};  // the operator vouches for it: hold-offs start anew
  put(*entry, wanted, moment.now);
  publish(moment);
}

void Servers::leave(const Moment& moment) {
  Entry* entry = find(moment.event.origin.member);
  if (entry == nullptr) return;
  put(*entry, State::lost, moment.now);
  entry->member = {};
  entry->queue = entry->held_bytes = 0;
  entry->recent.clear();
  if (std::holds_alternative<event::Bye>(moment.event.body)) {
    entries_.erase(entries_.begin() + (entry - entries_.data()));
  }
  publish(moment);
}

void Servers::tick(const Moment& moment) {
  for (Entry& entry : entries_) {
    if (entry.state == State::slow && entry.back <= moment.now) put(entry, State::up, moment.now);
  }
  publish(moment);
}

std::optional<Time> Servers::deadline() const {
  std::optional<Time> next;
  for (const Entry& entry : entries_) {
    if (entry.state == State::slow) next = std::min(next.value_or(Time::max()), entry.back);
  }
  return next;
}

std::vector<event::ServerMap::Server> Servers::in_map() const {
  std::vector<event::ServerMap::Server> servers;
  for (const Entry& entry : entries_) {
    if (entry.state == State::up) servers.push_back({entry.said.server, entry.said.directory, entry.said.addresses});
  }
  return servers;
}

void Servers::publish(const Moment& moment) {
  if (up() == 0) {
    // A slow server is better than none: the one whose trial comes first returns.
    Entry* first = nullptr;
    for (Entry& entry : entries_) {
      if (entry.state == State::slow && (first == nullptr || entry.back < first->back)) first = &entry;
    }
    if (first != nullptr) put(*first, State::up, moment.now);
  }
  std::string text = event::text_of(in_map());
  const bool changed = text != text_;
  if (changed) {
    ++epoch_;
    text_ = std::move(text);
  }
  for (Entry& entry : entries_) {
    if (entry.epoch == 0) entry.epoch = epoch_;
  }
  if (!changed) return;
  for (const auto& [id, application] : cluster_.applications()) {
    for (const model::Member* member : application.members) welcome(moment, member->id);
  }
}

void Servers::welcome(const Moment& moment, MemberId member) const {
  if (epoch_ > 0) moment.commands.push_back({member, event::NewServerMap{epoch_, text_}});
}

std::vector<event::IoServer> Servers::describe(Time now) const {
  std::vector<event::IoServer> rows;
  for (const Entry& entry : entries_) {
    event::IoServer& row = rows.emplace_back();
    row.server = entry.said.server;
    row.state = name_of(entry.state);
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
    for (const Work& work : entry.recent) {
      if (now - work.at >= load_window) continue;
      row.operations_per_s += static_cast<double>(work.operations) / to_s(load_window);
      row.bytes_per_s += static_cast<double>(work.bytes) / to_s(load_window);
      row.busy = saturating_sum(row.busy, work.service);
    }
    row.last_service = entry.last_service;
    if (entry.state == State::slow) row.back = entry.back;
  }
  return rows;
}

void Servers::refuse(const Moment& moment, std::string text) {
  moment.commands.push_back({moment.event.origin.member, event::Refused{std::move(text)}});
}

void Servers::adopted(model::Member& member, const event::MapAdopted& said) const {
  member.map_epoch = std::clamp<std::int64_t>(said.epoch, 0, epoch_);
}

}  // namespace hocket::coordinator
