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
// the same homes as those of others. While none of the assigned ones is in use, it uses all.
std::vector<ServerMap::MappedServer> Servers::map_of(const ApplicationMap& map,
                                                     std::vector<ServerMap::MappedServer> all) {
  const auto is_used = [&](const ServerMap::MappedServer& one) {
    return !one.set_aside && map.assigned.contains(one.name);
  };
  if (std::ranges::none_of(all, is_used)) return all;
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
  for (auto& [app, map] : maps_) {
    const bool reassigned = std::exchange(map.reassigned, false);
    if (!list_changes && !reassigned) continue;
    std::string own = map.assigned.empty() ? list_.text : event::text_of(map_of(map, all));
    if (own == map.newest.text && map.tuning == map.newest.tuning) continue;
    map.newest = {next, std::move(own), map.tuning};
    changes = true;
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
}

bool Servers::are_maps_apart() const {
  return std::ranges::any_of(maps_, [&](const auto& entry) {
    const ApplicationMap& map = entry.second;
    return !map.apart.empty() || map.newest.text != list_.text;
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
  if (!all_stored || handed_epoch_ == epoch_) return;
  handed_epoch_ = epoch_;
  if (handed_list_.epoch != list_.epoch) {
    handed_list_ = list_;
    handed_ = in_map();
  }
  for (auto& [app, map] : maps_) {
    if (map.handed.epoch == map.newest.epoch) continue;
    map.handed = map.newest;
    map.is_own = map.handed.text != list_.text;
    const model::Application* application = cluster_.find(app);
    for (const model::Member* member : application->members) hand(moment, map, member->id);
  }
}

void Servers::hand(const Moment& moment, ApplicationMap& map, MemberId member) {
  if (map.handed.epoch == 0) return;
  if (map.is_own) map.apart[member] = map.handed.epoch;
  moment.commands.push_back({member, event::NewServerMap{map.handed.epoch, map.handed.text, false, map.handed.tuning}});
}

void Servers::welcome(const Moment& moment, const model::Member& member) {
  const auto [entry, is_new] = maps_.try_emplace(member.application->id);
  if (is_new) {
    entry->second.newest = list_;
    entry->second.handed = handed_list_;
  }
  hand(moment, entry->second, member.id);
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

void Servers::forget(MemberId member) {
  adopted_.erase(member);
  for (auto& [app, map] : maps_) map.apart.erase(member);
  std::erase_if(maps_, [&](const auto& entry) { return cluster_.find(entry.first) == nullptr; });
}

}  // namespace hocket::coordinator
