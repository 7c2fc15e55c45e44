#include "sim/scenario_servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "allocation/choices.hpp"
#include "base/nearest.hpp"
#include "coordinator/servers/servers.hpp"
#include "event/server_map.hpp"
#include "sim/simulated_servers.hpp"

namespace hocket::sim {
namespace {

constexpr Limits any_bytes_per_s{0, 1e18};
constexpr auto most_servers = coordinator::Servers::most;

// True if the coordinator takes all servers: their number, and the text of their map.
bool fit_a_map(const std::vector<TargetSpec>& targets) {
  std::vector<event::ServerMap::MappedServer> all;
  for (const TargetSpec& target : targets) {
    for (const ServerSpec& server : target.servers)
      all.push_back({server.name, SimulatedServers::directory_of(target), SimulatedServers::address, true});
  }
  return all.size() <= most_servers && event::text_of(all).size() <= event::longest_server_map;
}

bool has_server(const TargetSpec& target, const std::string& name) {
  return std::ranges::find(target.servers, name, &ServerSpec::name) != target.servers.end();
}

bool is_name(std::string_view name) {
  const auto is_allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= 32 && std::ranges::all_of(name, is_allowed);
}

}  // namespace

std::size_t read_target_of(TableFields& fields, const std::vector<TargetSpec>& targets, std::string& name) {
  std::vector<std::string_view> names;
  names.reserve(targets.size());
  for (const TargetSpec& target : targets) names.push_back(target.name);
  name = fields.text("target", targets.empty() ? std::string{} : targets.front().name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    fields.wrong("target", fmt::format("there is no such target: did you mean '{}'?", nearest(name, names)));
    return 0;
  }
  return static_cast<std::size_t>(found - names.begin());
}

void read_servers(Problem& problem, const toml::table& table, std::vector<TargetSpec>& targets) {
  TableFields fields{problem, table, fmt::format("servers '{}'", table["name"].value_or("?"))};
  ServerSpec server;
  const std::string name = fields.text("name", std::nullopt);
  if (!is_name(name)) fields.wrong("name", "use at most 32 letters, digits, '_' and '-'");
  const std::int64_t count = fields.whole("count", {1, static_cast<double>(most_servers)}, 1);
  server.service_s = fields.number("service_s", seconds, 0);
  server.bandwidth = fields.number("bandwidth_bytes_per_s", any_bytes_per_s, 0);
  std::string target_name;
  const std::size_t target = read_target_of(fields, targets, target_name);
  fields.end();
  if (problem.error()) return;
  const auto is_taken = [&](const TargetSpec& one) { return has_server(one, name); };
  if (std::ranges::any_of(targets, is_taken)) fields.wrong("name", "there are servers of that name already");
  for (std::int64_t copy = 1; copy <= count; ++copy) {
    server.name = copy == 1 ? name : fmt::format("{}.{}", name, copy);
    targets[target].servers.push_back(server);
  }
  if (!fit_a_map(targets)) {
    fields.wrong("name", fmt::format("more servers than a server map can name: give at most {} in all, and short names",
                                     most_servers));
  }
}

void read_load(Problem& problem, const toml::table& table, std::vector<TargetSpec>& targets) {
  TableFields fields{problem, table, "[[load]]"};
  const std::string name = fields.text("server", std::nullopt);
  InjectedLoad load;
  load.from_s = fields.number("from_s", seconds, 0);
  load.to_s = fields.number("to_s", seconds, 0);
  load.delay_s = fields.number("delay_s", seconds, std::nullopt);
  if (load.to_s > 0 && load.to_s <= load.from_s) fields.wrong("to_s", "it would end before it begins: give more");
  fields.end();
  if (problem.error()) return;
  std::vector<std::string_view> names;
  for (TargetSpec& target : targets) {
    for (ServerSpec& server : target.servers) {
      names.push_back(server.name);
      if (server.name == name) return server.loads.push_back(load);
    }
  }
  fields.wrong("server", names.empty()
                             ? "there are no [[servers]]: add some"
                             : fmt::format("there is no such server: did you mean '{}'?", nearest(name, names)));
}

void check_requests(TableFields& fields, const ApplicationSpec& application, const std::vector<TargetSpec>& targets) {
  if (application.request_bytes <= 0) return;
  std::vector<std::size_t> used{application.target_index};
  for (const PhaseSpec& phase : application.phases) used.push_back(phase.target_index);
  const auto has_servers = [&](std::size_t target) { return !targets[target].servers.empty(); };
  if (std::ranges::none_of(used, has_servers)) {
    fields.wrong("request_bytes", "no [[servers]] are in front of its target: add some, or leave this out");
  }
  const auto is_queued = [&](std::size_t target) {
    return has_servers(target) && targets[target].sharing == BandwidthSharing::queued;
  };
  if (std::ranges::any_of(used, is_queued)) {
    fields.wrong("request_bytes", "its target is shared 'queued', where servers could not limit a writer");
  }
}

void read_forwarding(TableFields& fields, const toml::table& table, const Scenario& scenario, ApplicationSpec& spec) {
  spec.nodes = fields.whole("nodes", {1, static_cast<double>(scenario.nodes)}, 1);
  spec.measured = fields.truth("measured", true);
  fields.may_have("bandwidth_mb_s");
  if (!fields.has("bandwidth_mb_s")) return;
  const toml::table* const curve = table["bandwidth_mb_s"].as_table();
  std::map<int, std::int64_t> choices;
  for (const auto& [key, node] : curve != nullptr ? *curve : toml::table{}) {
    const std::string_view number = key.str();
    int servers = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), servers);
    const auto mb_s = node.value<double>();
    const bool is_number = error == std::errc{} && end == number.data() + number.size() && servers >= 0 &&
                           servers <= allocation::most_servers_of_choice;
    if (!is_number || !mb_s || !(*mb_s >= 1e-6 && *mb_s <= 1e9))
      return fields.wrong("bandwidth_mb_s",
                          fmt::format("'{}' is no number of I/O servers with MB/s from 1e-6 to 1e9", number));
    choices[servers] = std::llround(*mb_s * 1e6);
  }
  if (choices.empty() || choices.size() > allocation::most_choices)
    return fields.wrong("bandwidth_mb_s", "give 1 to 256 bandwidths by number of I/O servers: { 0 = 195.7, 1 = 77.6 }");
  for (const auto& [servers, bandwidth] : choices) spec.bandwidths.push_back({servers, bandwidth});
  if (spec.malleable || spec.request_bytes > 0 || spec.wait_for_cores_s > 0)
    fields.wrong("bandwidth_mb_s",
                 "such an application forwards its I/O: leave out malleable, request_bytes and wait_for_cores_s");
  std::vector<std::size_t> used{spec.target_index};
  for (const PhaseSpec& phase : spec.phases) used.push_back(phase.target_index);
  const auto is_queued = [&](std::size_t target) {
    return scenario.targets[target].sharing == BandwidthSharing::queued;
  };
  if (!scenario.targets.empty() && std::ranges::any_of(used, is_queued))
    fields.wrong("bandwidth_mb_s", "its target is shared 'queued', where servers could not limit a writer");
}

}  // namespace hocket::sim
