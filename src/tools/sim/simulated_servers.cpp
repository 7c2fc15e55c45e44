#include "sim/simulated_servers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "event/server_map.hpp"

namespace hocket::sim {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

}  // namespace

SimulatedServers::SimulatedServers(const Scenario& scenario, Time start)
    : scenario_(scenario),
      newest_(scenario.applications.size()),
      adopted_(scenario.applications.size()),
      operations_(scenario.applications.size()),
      last_(scenario.applications.size()),
      start_(start),
      last_report_(start) {
  for (std::size_t target = 0; target < scenario.targets.size(); ++target) {
    for (const ServerSpec& spec : scenario.targets[target].servers) {
      by_name_.emplace(spec.name, static_cast<ServerNumber>(servers_.size()));
      servers_.push_back({&spec, target});
      for (const InjectedLoad& load : spec.loads) {
        load_changes_.push_back(start + from_s(load.from_s));
        if (load.to_s > 0) load_changes_.push_back(start + from_s(load.to_s));
      }
    }
  }
  std::sort(load_changes_.begin(), load_changes_.end());
  std::vector<ServerNumber> all(servers_.size());
  std::iota(all.begin(), all.end(), 0U);
  for (ApplicationMap& map : adopted_) map.servers = all;
}

event::Server SimulatedServers::about(ServerNumber server) const {
  const ServerState& state = servers_[server];
  return {state.spec->name, address, directory_of(scenario_.targets[state.target])};
}

// ---- maps ----------------------------------------------------------------------------------------------------------

void SimulatedServers::receive(ApplicationNumber app, const event::NewServerMap& map) {
  ApplicationMap& newest = newest_[app];
  newest = {map.epoch, {}};
  // The coordinator made the text, so it can be parsed.
  const auto parsed = event::parse_server_map(map.epoch, map.text);
  if (!parsed) return;
  for (const event::ServerMap::MappedServer& one : parsed.value().servers) {
    const auto known = by_name_.find(one.name);
    if (!one.set_aside && known != by_name_.end()) newest.servers.push_back(known->second);
  }
}

std::optional<std::int64_t> SimulatedServers::adopt(ApplicationNumber app) {
  if (newest_[app].epoch == adopted_[app].epoch) return std::nullopt;
  adopted_[app] = newest_[app];
  return adopted_[app].epoch;
}

// ---- operations ----------------------------------------------------------------------------------------------------

void SimulatedServers::begin(ApplicationNumber app, std::size_t target, double bytes, std::int64_t clients,
                             double request_bytes) {
  end(app);
  Operation& operation = operations_[app];
  for (const ServerNumber number : adopted_[app].servers) {
    if (servers_[number].target != target) continue;
    operation.servers.push_back(number);
    ++servers_[number].operations;
  }
  if (operation.servers.empty()) return;
  operation.bytes = bytes;
  operation.part = part_of_each(bytes, clients, request_bytes, operation.servers.size());
  operation.epoch = adopted_[app].epoch;
  ++under_way_;
  const bool load_changed = std::exchange(load_changed_, false);
  if (load_changed || under_way_ > 1 || !operation.is_like(last_[app])) changed();
}

void SimulatedServers::end(ApplicationNumber app) {
  Operation& operation = operations_[app];
  if (operation.servers.empty()) return;
  for (const ServerNumber number : operation.servers) --servers_[number].operations;
  last_[app] = std::exchange(operation, {});
  --under_way_;
  reports_left_ = std::max(reports_left_, 1);
}

double SimulatedServers::rate(ApplicationNumber app) const {
  const Operation& operation = operations_[app];
  double longest = 0;
  for (const ServerNumber number : operation.servers) {
    const ServerState& server = servers_[number];
    const double alone = seconds_of(*server.spec, operation.part, server.delay_s);
    longest = std::max(longest, alone * static_cast<double>(server.operations));
  }
  return longest > 0 ? operation.bytes / longest : no_limit;
}

void SimulatedServers::count(ApplicationNumber app, double bytes) {
  const Operation& operation = operations_[app];
  const double fraction = operation.bytes > 0 ? bytes / operation.bytes : 0;
  for (const ServerNumber number : operation.servers) {
    ServerState& server = servers_[number];
    server.requests += fraction * operation.part.requests;
    server.bytes += fraction * operation.part.bytes;
    server.service_s += fraction * seconds_of(*server.spec, operation.part, server.delay_s);
  }
}

// ---- load and reports -----------------------------------------------------------------------------------------------

std::optional<Time> SimulatedServers::next_load_change() const {
  if (next_change_ == load_changes_.size()) return std::nullopt;
  return load_changes_[next_change_];
}

void SimulatedServers::take_load(Time now) {
  while (next_change_ < load_changes_.size() && load_changes_[next_change_] <= now) ++next_change_;
  for (ServerState& server : servers_) {
    server.delay_s = 0;
    for (const InjectedLoad& load : server.spec->loads) {
      const bool begun = start_ + from_s(load.from_s) <= now;
      const bool over = load.to_s > 0 && start_ + from_s(load.to_s) <= now;
      if (begun && !over) server.delay_s += load.delay_s;
    }
  }
  load_changed_ = under_way_ == 0;
  if (under_way_ > 0) changed();
}

// A report without a completed request says nothing, so slow requests make reports rarer.
std::optional<Time> SimulatedServers::next_report(Time now) {
  if (reports_left_ == 0) return std::nullopt;
  Duration every = report_every;
  for (ApplicationNumber app = 0; app < operations_.size(); ++app) {
    const Operation& operation = operations_[app];
    if (operation.servers.empty()) continue;
    const double of_a_request = operation.bytes / rate(app) / operation.part.requests;
    every = std::max(every, from_s(of_a_request));
  }
  return std::max(now, last_report_ + every);
}

std::optional<event::ServerLoad> SimulatedServers::report(ServerNumber server) {
  ServerState& state = servers_[server];
  constexpr double nearly = 1e-6;  // of a request, for rounding errors
  const double handled = std::floor(state.requests + nearly);
  if (handled < 1) return std::nullopt;
  const double part = std::min(1.0, handled / state.requests);
  event::ServerLoad load;
  load.operations = static_cast<std::int64_t>(handled);
  load.bytes = std::llround(state.bytes * part);
  load.service = from_s(state.service_s * part);
  state.requests = std::max(0.0, state.requests - handled);
  state.bytes -= state.bytes * part;
  state.service_s -= state.service_s * part;
  return load;
}

void SimulatedServers::reported(Time now, std::size_t count) {
  last_report_ = now;
  // A round in which nothing was complete says nothing yet, unless nothing more will be.
  if (reports_left_ > 0 && (count > 0 || under_way_ == 0)) --reports_left_;
}

}  // namespace hocket::sim
