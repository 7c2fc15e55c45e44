// The I/O servers in a simulation. They are members of the coordinator, as hocket-servers are: they send SERVER and
// SERVER_LOAD, and applications adopt the maps that follow (MAP_ADOPTED).
#include <algorithm>
#include <utility>

#include "sim/simulation.hpp"

namespace hocket::sim {

void Simulation::join_servers() {
  for (SimulatedServers::ServerNumber number = 0; number < servers_.size(); ++number) {
    const event::Server about = servers_.about(number);
    server_members_.push_back({MemberId{members_.size() + number + 1}, {}, {}});
    if (!controller_) continue;
    send(server_members_.back(), event::Hello{{}, about.server, "hocket-server", {}, {}, 0, 0});
    send(server_members_.back(), about);
  }
  if (servers_.size() > 0) set_servers_event();
}

// A collective operation is a control point: the application uses the newest map from here on. The report of it is sent
// later, because this may be inside the answer to another event.
void Simulation::begin_at_servers(QueueNumber i, bool at_control_point) {
  const SimulatedApplication& application = applications_[i];
  const PhaseSpec& phase = application.phase();
  if (forwarded_.forwards(i)) {
    forwarded_.set_under_way(i, true);
    return set_server_rates();
  }
  if (servers_.size() == 0 || phase.cached || application.spec().request_bytes <= 0) return;
  SimulatedMember& member = members_[i];
  if (at_control_point) {
    if (const auto epoch = servers_.adopt(i)) adoptions_.push_back({i, *epoch});
  }
  const double bytes = application.operation_bytes();
  servers_.begin(i, phase.target_index, bytes, application.writers(), application.spec().request_bytes);
  member.counted = bytes - member.rest;
  set_server_rates();
  set_servers_event();
}

void Simulation::end_at_servers(QueueNumber i) {
  if (forwarded_.forwards(i)) {
    forwarded_.set_under_way(i, false);
    return set_server_rates();
  }
  if (!servers_.uses(i)) return;
  count_at_servers(i);
  servers_.end(i);
  set_server_rates();
  set_servers_event();
}

void Simulation::count_at_servers(QueueNumber i) {
  SimulatedMember& member = members_[i];
  const double done = bytes_done(i);
  servers_.count(i, std::max(0.0, done - member.counted));
  member.counted = done;
}

double Simulation::most_rate(QueueNumber i) const {
  const double most = applications_[i].bandwidth();
  if (forwarded_.forwards(i)) return std::min(most, forwarded_.rate(i));
  return servers_.uses(i) ? std::min(most, servers_.rate(i)) : most;
}

// A transfer has one rate from its start to its end, so one whose rate changes is replaced by another for its rest.
void Simulation::set_server_rates() {
  for (QueueNumber i = 0; i < members_.size(); ++i) {
    SimulatedMember& member = members_[i];
    const bool has_limit = servers_.uses(i) || forwarded_.forwards(i);
    if (!has_limit || member.transfer == no_transfer || most_rate(i) == member.most) continue;
    const double left = targets_[member.target].stop(now_, member.transfer);
    bytes_[member.target] -= left;
    start_transfer(i, left);
  }
}

// The report of the adoption is sent later, because this is inside the answer to an event.
void Simulation::use_map(QueueNumber i, const event::NewServerMap& map) {
  count_served(i);
  forwarded_.receive(i, map);
  members_[i].served_since = now_;
  adoptions_.push_back({i, map.epoch});
  set_server_rates();
  set_servers_event();
}

void Simulation::count_served(QueueNumber i) {
  const Time since = std::exchange(members_[i].served_since, Time{});
  if (since != Time{}) applications_[i].result.served_s[forwarded_.given(i)] += to_s(now_ - since);
}

void Simulation::servers_event() {
  for (const Adoption& adoption : std::exchange(adoptions_, {})) {
    if (controller_) send(members_[adoption.application].self, event::MapAdopted{adoption.epoch});
  }
  const auto load_change = servers_.next_load_change();
  const bool changes = load_change && *load_change <= now_;
  const auto report = servers_.next_report(now_);
  // What was done before the load changes is reported by itself: a mean of both would hide the change.
  if (changes || (report && *report <= now_)) report_servers();
  if (changes) {
    servers_.take_load(now_);
    set_server_rates();
  }
  set_servers_event();
}

void Simulation::report_servers() {
  for (QueueNumber i = 0; i < members_.size(); ++i) {
    if (servers_.uses(i)) count_at_servers(i);
  }
  std::size_t count = 0;
  for (SimulatedServers::ServerNumber number = 0; number < servers_.size(); ++number) {
    const auto load = servers_.report(number);
    count += load.has_value();
    if (load && controller_) send(server_members_[number], *load);
  }
  servers_.reported(now_, count);
}

void Simulation::set_servers_event() {
  Time next = adoptions_.empty() ? Time::max() : now_;
  if (const auto change = servers_.next_load_change()) next = std::min(next, std::max(now_, *change));
  // Without a coordinator nobody reads reports.
  if (controller_) {
    if (const auto report = servers_.next_report(now_)) next = std::min(next, *report);
  }
  if (next == Time::max()) {
    queue_.erase(number_of_servers());
  } else {
    queue_.set(number_of_servers(), next);
  }
}

// Servers hold deadlines of the coordinator, such as the end of a hold-off, and may have load to come.
void Simulation::end_with_applications() {
  const auto has_ended = [](const SimulatedApplication& one) { return one.state == ApplicationState::ended; };
  if (servers_.size() == 0 || !std::ranges::all_of(applications_, has_ended)) return;
  queue_.erase(number_of_servers());
  queue_.erase(number_of_tick());
}

}  // namespace hocket::sim
