// The changes for single applications: servers are assigned, by hand and as the policy wants, and their collective
// I/O is tuned.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "coordinator/servers/servers.hpp"
#include "explain/words.hpp"

namespace hocket::coordinator {

using explain::number;
using explain::quoted;
using policy::ServerChange;

namespace {

// Returns the number that the text is; nothing if it is none.
std::optional<std::size_t> count_in(std::string_view text) {
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return count;
}

std::set<std::string> split(std::string_view text) {
  std::set<std::string> names;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(','), text.size());
    names.emplace(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return names;
}

// Says why so many servers cannot be assigned to the application, if `fitting` of those that are up are on its file
// system, and on `node` if it is not "".
std::string too_many(std::size_t count, std::size_t fitting, std::size_t up, const model::Application& application,
                     const std::string& node) {
  const auto as_number = [](std::size_t value) { return number(static_cast<std::int64_t>(value)); };
  const std::string where = fitting == up ? "" : " on " + application.file_system + (node.empty() ? "" : " of " + node);
  const std::string start = "cannot assign " + as_number(count) + (count == 1 ? " server: " : " servers: ");
  if (fitting == 0 && up > 0) return start + "none is up" + where;
  return start + "give 1 to " + as_number(fitting) + ", as many as are up" + where + ", or \"all\"";
}

}  // namespace

std::size_t Servers::up_for(const model::Application& application) const {
  return static_cast<std::size_t>(std::ranges::count_if(entries_, [&](const ServerEntry& entry) {
    return entry.state == ServerState::up && policy::fits(entry.said.file_system, entry.node, application);
  }));
}

// Returns the servers that are up, fit the application, and are assigned to the fewest others; of equal ones, those
// that came first.
std::set<std::string> Servers::least_assigned(std::size_t count, const model::Application& application) const {
  std::vector<std::pair<std::int64_t, const ServerEntry*>> ranked;
  for (const ServerEntry& entry : entries_) {
    if (entry.state != ServerState::up || !policy::fits(entry.said.file_system, entry.node, application)) continue;
    const auto uses = std::ranges::count_if(maps_, [&](const auto& other) {
      return other.first != application.id && other.second.assigned.contains(entry.said.server);
    });
    ranked.emplace_back(uses, &entry);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& one) { return one.first; });
  std::set<std::string> names;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) names.insert(ranked[i].second->said.server);
  return names;
}

// Returns the node that an application is bound to, if servers of other nodes are up.
std::string Servers::own_node(const model::Application& application) const {
  const std::string node{application.forwards ? policy::node_of(application) : std::string_view{}};
  const bool are_elsewhere = std::ranges::any_of(
      entries_, [&](const ServerEntry& entry) { return entry.state == ServerState::up && entry.node != node; });
  return are_elsewhere ? node : std::string{};
}

std::string Servers::gone_among(const std::set<std::string>& names) const {
  const auto gone = std::ranges::find_if(names, [&](const std::string& name) {
    return server_step(state_of(find(name)), ServerInput::add).action == ServerAction::refuse;
  });
  return gone == names.end() ? std::string{} : *gone;
}

const Servers::ServerEntry* Servers::misfit_among(const std::set<std::string>& names,
                                                  const model::Application& application) const {
  for (const std::string& name : names) {
    const ServerEntry* const entry = find(name);
    if (!policy::fits(entry->said.file_system, entry->node, application)) return entry;
  }
  return nullptr;
}

void Servers::assign_by_hand(const Moment& moment, const event::SetServer& set) {
  const model::Application* application = cluster_.find_application(set.application);
  if (application == nullptr) {
    return refuse(moment, "no application " + quoted(set.application.substr(0, longest_name)) +
                              " is running: 'hocket ls' lists them");
  }
  std::set<std::string> names;
  const auto count = count_in(set.server);
  const bool direct = count == 0U && application->forwards;
  if (count && !direct) {
    names = least_assigned(*count, *application);
    if (*count == 0 || names.size() < *count)
      return refuse(moment, too_many(*count, up_for(*application), up(), *application, own_node(*application)));
  } else if (!direct && set.server != all_servers) {
    names = split(set.server);
    const bool is_list = !names.empty() && std::ranges::all_of(names, [](const auto& name) { return is_name(name); });
    if (!is_list) {
      return refuse(moment, "SET_SERVER: " + quoted(set.server.substr(0, longest_name)) +
                                " are no servers: give a number, names joined by ',', or \"all\"");
    }
    if (const std::string gone = gone_among(names); !gone.empty()) {
      return refuse(moment, "no server called " + quoted(gone) + " runs; 'hocket servers' lists them");
    }
    if (const ServerEntry* const misfit = misfit_among(names, *application)) {
      const bool is_elsewhere = policy::fits(misfit->said.file_system, {}, *application);
      const std::string where{is_elsewhere ? misfit->node : misfit->said.file_system};
      const std::string wanted{is_elsewhere ? policy::node_of(*application) : application->file_system};
      return refuse(moment, "I/O server " + quoted(misfit->said.server) + " is on " + where +
                                (is_elsewhere ? ", and " : ", and the files of ") + quoted(application->name) +
                                (is_elsewhere ? " runs on " : " are on ") + wanted + ": name servers on it");
    }
  }
  ApplicationMap& map = maps_.at(application->id);
  map.by_hand = direct || !names.empty();
  map.given = {};
  if (map.forwards) ++set_;
  assign(map, std::move(names), direct);
  publish(moment);
}

void Servers::assign(ApplicationMap& map, std::set<std::string> names, bool direct, bool none_fits) {
  map.reassigned = map.reassigned || names != map.assigned || direct != map.direct || none_fits != map.none_fits;
  if (map.reassigned) changed_maps_.insert(map.app);
  users_changed_ |= names != map.assigned;
  map.assigned = std::move(names);
  map.direct = direct;
  map.none_fits = none_fits;
}

void Servers::assign(const Moment& moment, const std::vector<const ServerChange*>& changes) {
  std::vector<const ServerChange*> done;
  for (const ServerChange* const wanted : changes)
    if (reassign(moment, *wanted)) done.push_back(wanted);
  if (done.empty()) return;
  publish(moment);
  for (const ServerChange* const one : done) {
    ApplicationMap& map = maps_.at(one->application);
    event::Reason reason = event::ServersInUse{names_in_use(map), map.newest.epoch};
    if (one->given) {
      map.given = *one->given;
      map.given.servers = names_in_use(map);
      map.given.epoch = map.newest.epoch;
      reason = map.given;
    }
    tell(moment, cluster_.find(one->application)->name, "assign", one->text, std::move(reason), {});
  }
}

bool Servers::reassign(const Moment& moment, const ServerChange& change) {
  const model::Application* application = cluster_.find(change.application);
  if (application == nullptr) return false;  // it has left
  ApplicationMap& map = maps_.at(change.application);
  std::set<std::string> names(change.servers.begin(), change.servers.end());
  if (names == map.assigned && change.direct == map.direct && change.none_fits == map.none_fits) return false;
  if (auto why = obstacle(*application, map, names, change.direct, moment.now)) {
    ignore(moment, application->name, map.ignored, change.text, *std::move(why));
    return false;
  }
  map.changed = moment.now;
  map.changed_set = set_;
  map.given = {};
  map.ignored.clear();
  assign(map, std::move(names), change.direct, change.none_fits);
  return true;
}

std::optional<event::Reason> Servers::obstacle(const model::Application& application, const ApplicationMap& map,
                                               const std::set<std::string>& names, bool direct, Time now) const {
  if (std::string gone = gone_among(names); !gone.empty()) return event::ServerGone{gone.substr(0, longest_name)};
  if (misfit_among(names, application) != nullptr) return event::because(event::circumstance::other_file_system);
  if (direct && !map.forwards) return event::because(event::circumstance::not_forwarded);
  if (map.by_hand) return event::because(event::circumstance::assigned_by_hand);
  // Servers hold nothing of a forwarded application, so that a new map costs it nothing.
  if (map.forwards && map.changed_set != set_) return std::nullopt;
  return too_soon(application, map, map.changed, now);
}

std::optional<event::Reason> Servers::too_soon(const model::Application& application, const ApplicationMap& map,
                                               std::optional<Time> changed, Time now) const {
  if (!changed) return std::nullopt;
  const Duration since = now - *changed;
  if (since < between_changes) return event::ChangedLately{to_s(since), to_s(between_changes)};
  const std::int64_t used = epoch_of(application);
  if (used > 0 && used < map.newest.epoch && since < adoption_limit) {
    return event::because(event::circumstance::map_not_adopted);
  }
  return std::nullopt;
}

std::vector<policy::AssignedServers> Servers::assignments() const {
  std::vector<policy::AssignedServers> all;
  for (const AppId app : changed_maps_) {
    const ApplicationMap& map = maps_.at(app);
    if (map.assigned.empty() && !map.direct && !map.none_fits) continue;
    const model::Application* application = cluster_.find(app);
    all.push_back({app,
                   {map.assigned.begin(), map.assigned.end()},
                   map.by_hand,
                   map.newest.epoch,
                   application == nullptr ? 0 : epoch_of(*application),
                   map.none_fits});
  }
  return all;
}

// ---- tuning --------------------------------------------------------------------------------------------------------

namespace {

// Returns what is wrong with a tuning for an application of so many processes; nothing if it can be used.
std::optional<event::Reason> fault_of(const ServerChange& change, std::int64_t processes) {
  const auto fault = [](const char* what, const std::optional<std::int64_t>& given, std::int64_t least,
                        std::int64_t most) -> std::optional<event::Reason> {
    if (!given || (*given >= least && *given <= most)) return std::nullopt;
    return event::InvalidValue{what, number(*given), least, most};
  };
  if (auto wrong = fault("aggregators", change.aggregators, 1, std::max<std::int64_t>(processes, 1))) return wrong;
  if (auto wrong =
          fault("buffer_bytes", change.buffer_bytes, event::smallest_buffer_bytes, event::largest_tuned_buffer_bytes))
    return wrong;
  const auto& known = event::tuned_methods;
  if (!change.method || std::ranges::find(known, *change.method) != known.end()) return std::nullopt;
  constexpr std::size_t longest = 64;
  return event::InvalidValue{"method", change.method->substr(0, longest), 0, 0};
}

}  // namespace

void Servers::tune(const Moment& moment, const ServerChange& change) {
  const model::Application* application = cluster_.find(change.application);
  if (application == nullptr) return;  // it has left
  ApplicationMap& map = maps_.at(change.application);
  const event::Tuning wanted{change.aggregators.value_or(0), change.buffer_bytes.value_or(0),
                             change.method.value_or(std::string{})};
  auto why = fault_of(change, application->computing_processes());
  if (!why && wanted == map.tuning) return;
  if (!why) why = too_soon(*application, map, map.tuned, moment.now);
  if (why) return ignore(moment, application->name, map.ignored, change.text, *std::move(why));
  map.tuned = moment.now;
  map.ignored.clear();
  map.tuning = wanted;
  map.reassigned = true;
  changed_maps_.insert(map.app);
  publish(moment);
  tell(moment, application->name, "tune", change.text,
       event::IoTuned{wanted.aggregators, wanted.buffer_bytes, wanted.method, map.newest.epoch}, {});
}

void Servers::take_use(const Moment& moment, const model::Application& application, ApplicationMap& map,
                       const event::MapAdopted& said) {
  if (!said.used.any()) return;
  map.said = said;
  constexpr std::size_t longest = 64;
  if (!said.hinted.empty())
    ignore(moment, application.name, map.ignored, {}, event::HintsFirst{said.hinted.substr(0, longest)});
}

std::vector<policy::TunedApplication> Servers::tuned() const {
  std::vector<policy::TunedApplication> all;
  for (const AppId app : changed_maps_)
    if (const ApplicationMap& map = maps_.at(app); map.tuning.any())
      all.push_back({app, map.tuning, map.said.used, map.said.hinted});
  return all;
}

std::string Servers::own_servers_of(const model::Application& application) const {
  const auto found = maps_.find(application.id);
  if (found == maps_.end() || found->second.newest.text == list_.text) return {};
  return names_in_use(found->second);
}

std::int64_t Servers::given_to(const model::Application& application) const {
  const auto found = maps_.find(application.id);
  if (found == maps_.end()) return -1;
  const ApplicationMap& map = found->second;
  if (map.assigned.empty() && !map.direct && !map.none_fits) return -1;
  return static_cast<std::int64_t>(map.assigned.size());
}

double Servers::expected_of(const model::Application& application) const {
  const auto found = maps_.find(application.id);
  const double expected = found == maps_.end() ? event::not_known : found->second.given.bandwidth;
  return std::isnan(expected) ? 0 : expected;
}

std::string Servers::assigned_to(const model::Application& application) const {
  std::string names;
  const auto found = maps_.find(application.id);
  if (found == maps_.end()) return names;
  for (const std::string& name : found->second.assigned) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

}  // namespace hocket::coordinator
