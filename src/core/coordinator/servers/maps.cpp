// The server maps: the list of all servers in use, and the servers that are assigned to single applications. When they
// change, a new epoch begins; servers and applications are sent what concerns them.
#include <algorithm>
#include <utility>

#include "coordinator/servers/servers.hpp"

namespace hocket::coordinator {

using event::ServerMap;

std::vector<ServerMap::MappedServer> Servers::in_map() const {
  std::vector<ServerMap::MappedServer> servers;
  for (const ServerEntry& entry : entries_) {
    const bool aside = entry.state == ServerState::slow || entry.moves_data_sets;
    if (entry.in_map || aside)
      servers.push_back({entry.said.server, entry.said.directory, entry.said.addresses, aside, entry.weight});
  }
  return servers;
}

// Servers that are not assigned are set aside for the application: its files do not use them, and its data sets have
// the same homes as those of others. While none of the assigned ones is in use, it uses all, unless it is to use none
// or none fits.
std::vector<ServerMap::MappedServer> Servers::map_of(const ApplicationMap& map,
                                                     std::vector<ServerMap::MappedServer> all) {
  const auto is_used = [&](const ServerMap::MappedServer& one) {
    return !one.set_aside && map.assigned.contains(one.name);
  };
  if (!map.direct && !map.none_fits && std::ranges::none_of(all, is_used)) return all;
  for (ServerMap::MappedServer& one : all) one.set_aside = !is_used(one);
  return all;
}

void Servers::publish(const Moment& moment) {
  if (up() == 0) {
    // A slow server is better than none: the one whose trial comes first returns.
    ServerEntry* first = nullptr;
    for (ServerEntry& entry : entries_) {
      if (entry.state == ServerState::slow && (first == nullptr || entry.back < first->back)) first = &entry;
    }
    if (first != nullptr) apply(*first, ServerInput::need, moment.now);
  }
  const std::vector<ServerMap::MappedServer> all = in_map();
  std::string text = event::text_of(all);
  const std::int64_t next = epoch_ + 1;
  const bool list_changes = text != list_.text;
  if (list_changes) list_ = {next, std::move(text), {}};
  bool changes = list_changes;
  const auto renew = [&](ApplicationMap& map) {
    const bool reassigned = std::exchange(map.reassigned, false);
    if (!list_changes && !reassigned) return;
    const bool is_own = map.direct || map.none_fits || !map.assigned.empty();
    std::string own = is_own ? event::text_of(map_of(map, all)) : list_.text;
    MapText& newest = map.newest;
    const bool is_new = newest.epoch == 0 && list_.epoch > 0;
    if (!is_new && own == newest.text && map.tuning == newest.tuning && map.direct == newest.direct) return;
    newest = {next, std::move(own), map.tuning, map.direct};
    changes = true;
  };
  if (list_changes) {
    for (auto& [app, map] : maps_) renew(map);
  } else {
    for (const AppId app : changed_maps_) renew(maps_.at(app));
  }
  const bool write_through = are_maps_apart();
  const bool tells = list_changes || write_through != write_through_;
  write_through_ = write_through;
  if (changes || tells) epoch_ = next;
  if (tells) told_epoch_ = epoch_;
  for (ServerEntry& entry : entries_) {
    if (entry.epoch == 0) entry.epoch = list_.epoch;
    if (tells && entry.member) store(moment, entry, StoringInput::tell);
  }
  tell_of_moves(moment);
  hand_out(moment);
  if (users_changed_) regroup();
}

// Applications without servers of their own use all, so they make no difference.
void Servers::regroup() {
  users_changed_ = false;
  std::map<std::string_view, std::string> users;
  for (const AppId app : changed_maps_)
    for (const std::string& name : maps_.at(app).assigned) users[name] += std::to_string(app.value) + " ";
  for (const ServerEntry& entry : entries_)
    if (entry.state == ServerState::up) detector_.regroup(entry.member, users[entry.said.server]);
}

bool Servers::are_maps_apart() const {
  return std::ranges::any_of(changed_maps_, [&](AppId app) {
    const ApplicationMap& map = maps_.at(app);
    // Servers hold nothing of an application that forwards. It sees what they hold for others as direct accesses do.
    return !map.forwards && (!map.apart.empty() || map.newest.text != list_.text);
  });
}

void Servers::store(const Moment& moment, ServerEntry& entry, StoringInput input) const {
  if (!entry.said.write_behind) return;
  const StoringStep step = storing_step(entry.storing, input);
  entry.storing = step.next;
  if (step.action != StoringAction::send) return;
  moment.commands.push_back({entry.member, event::NewServerMap{told_epoch_, list_.text, write_through_}});
}

void Servers::stored(const Moment& moment, const event::MapStored& said) {
  ServerEntry* entry = find(moment.event.origin.member);
  // The answer to an earlier epoch: that to the newest is still to come.
  if (entry == nullptr || said.epoch != told_epoch_) return;
  store(moment, *entry, StoringInput::answer);
  hand_out(moment);
}

void Servers::hand_out(const Moment& moment) {
  const bool all_stored =
      std::ranges::all_of(entries_, [](const ServerEntry& entry) { return entry.storing == StoringState::clear; });
  if (handed_epoch_ == epoch_) return;
  if (all_stored) handed_epoch_ = epoch_;
  if (all_stored && handed_list_.epoch != list_.epoch) {
    handed_list_ = list_;
    handed_ = in_map();
  }
  for (auto& [app, map] : maps_) {
    if (map.handed.epoch == map.newest.epoch) continue;
    if (!all_stored && !map.forwards) continue;
    map.handed = map.newest;
    map.is_own = map.handed.text != list_.text;
    const model::Application* application = cluster_.find(app);
    for (const model::Member* member : application->members) hand(moment, map, member->id);
  }
}

void Servers::hand(const Moment& moment, ApplicationMap& map, MemberId member) {
  if (map.handed.epoch == 0) return;
  if (map.is_own && !map.forwards) map.apart[member] = map.handed.epoch;
  moment.commands.push_back(
      {member, event::NewServerMap{map.handed.epoch, map.handed.text, false, map.handed.tuning, map.handed.direct}});
}

void Servers::welcome(const Moment& moment, const model::Member& member) {
  const auto [entry, is_new] = maps_.try_emplace(member.application->id);
  ApplicationMap& map = entry->second;
  map.app = entry->first;
  if (is_new && member.application->forwards) {
    map.forwards = true;
    changed_maps_.insert(map.app);
    ++set_;
  }
  if (is_new) weigh_by_default(moment, *member.application, map);
  if (is_new && map.forwards && policy_->arbitrates) {
    map.reassigned = true;  // the policy gives it its first map, after this event
  } else if (is_new) {
    map.newest = list_;
    map.handed = map.forwards ? list_ : handed_list_;
  }
  hand(moment, map, member.id);
}

// ---- what applications use -----------------------------------------------------------------------------------------

void Servers::adopted(const Moment& moment, const model::Member& member, const event::MapAdopted& said) {
  ApplicationMap& map = maps_.at(member.application->id);
  const std::int64_t epoch = std::clamp<std::int64_t>(said.epoch, 0, map.handed.epoch);
  if (map.tuning.any()) take_use(moment, *member.application, map, said);
  if (epoch == 0) {
    adopted_.erase(member.id);
    return;
  }
  adopted_[member.id] = epoch;
  const auto apart = map.apart.find(member.id);
  if (apart == map.apart.end() || epoch <= apart->second) return;
  map.apart.erase(apart);
  publish(moment);
}

std::int64_t Servers::epoch_of(const model::Application& application) const {
  std::int64_t oldest = 0;
  for (const model::Member* member : application.members) {
    const auto used = adopted_.find(member->id);
    if (used != adopted_.end() && (oldest == 0 || used->second < oldest)) oldest = used->second;
  }
  return oldest;
}

void Servers::forget(MemberId member, AppId app) {
  adopted_.erase(member);
  const auto found = maps_.find(app);
  if (found == maps_.end()) return;
  ApplicationMap& map = found->second;
  map.apart.erase(member);
  if (cluster_.find(app) != nullptr) return;  // others of its members are there
  if (map.forwards) ++set_;
  users_changed_ |= !map.assigned.empty();
  changed_maps_.erase(app);
  maps_.erase(found);
}

}  // namespace hocket::coordinator
