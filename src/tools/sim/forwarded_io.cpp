#include "sim/forwarded_io.hpp"

#include "event/server_map.hpp"

namespace hocket::sim {

double bandwidth_with(const ApplicationSpec& spec, std::int64_t servers) {
  std::int64_t bandwidth = spec.bandwidths.front().bandwidth;
  for (const allocation::Choice& choice : spec.bandwidths)
    if (choice.servers <= servers) bandwidth = choice.bandwidth;
  return static_cast<double>(bandwidth);
}

void ForwardedIo::count(const State& state, int change) {
  if (!state.is_under_way) return;
  for (const std::string& server : state.servers) users_[server] += change;
}

void ForwardedIo::receive(ApplicationNumber app, const event::NewServerMap& map) {
  State& state = states_[app];
  count(state, -1);
  state.servers.clear();
  const auto parsed = event::parse_server_map(map.epoch, map.text);
  for (const event::ServerMap::MappedServer& server : parsed.value().servers)
    if (!server.set_aside && !map.direct) state.servers.push_back(server.name);
  count(state, 1);
}

void ForwardedIo::set_under_way(ApplicationNumber app, bool is_under_way) {
  State& state = states_[app];
  count(state, -1);
  state.is_under_way = is_under_way;
  count(state, 1);
}

double ForwardedIo::rate(ApplicationNumber app) const {
  const State& state = states_[app];
  const double alone = bandwidth_with(scenario_.applications[app], given(app));
  if (state.servers.empty()) return alone;
  double parts = 0;
  for (const std::string& server : state.servers) {
    const auto found = users_.find(server);
    parts += found == users_.end() || found->second < 2 ? 1.0 : 1.0 / found->second;
  }
  return alone * parts / static_cast<double>(state.servers.size());
}

}  // namespace hocket::sim
