// The I/O of applications whose data go through I/O servers (`hocket forward`). Its rate is what the scenario says for
// the number of servers that the application has. Where applications with I/O under way share a server, its part of
// the rate is divided among them (GekkoFWD, section 3).
//
// Servers hold none of these data, so a map counts at once. Deterministic, not thread-safe. It knows neither clock nor
// coordinator: simulation.hpp drives it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "event/event.hpp"
#include "sim/scenario.hpp"

namespace hocket::sim {

class ForwardedIo {
 public:
  using ApplicationNumber = std::uint32_t;  // index of an application in the scenario

  // `scenario` must outlive the object.
  explicit ForwardedIo(const Scenario& scenario) : scenario_(scenario), states_(scenario.applications.size()) {}

  bool forwards(ApplicationNumber app) const { return !scenario_.applications[app].bandwidths.empty(); }
  // Takes a SERVER_MAP in. Until the first one, the application accesses its files directly.
  void receive(ApplicationNumber app, const event::NewServerMap& map);
  // Begins or ends an operation of the application.
  void set_under_way(ApplicationNumber app, bool is_under_way);
  // Returns how many servers it has; 0: none.
  std::int64_t given(ApplicationNumber app) const { return static_cast<std::int64_t>(states_[app].servers.size()); }
  // Returns the rate in bytes per second of an operation under way. Precondition: forwards(app).
  double rate(ApplicationNumber app) const;

 private:
  struct State {
    std::vector<std::string> servers;
    bool is_under_way = false;
  };
  void count(const State& state, int change);

  const Scenario& scenario_;
  std::vector<State> states_;
  std::unordered_map<std::string, int> users_;  // applications with I/O under way, by server
};

// Returns the bandwidth with so many servers: that of the next lower number that the scenario has, or of its lowest.
// Precondition: there is one.
double bandwidth_with(const ApplicationSpec& spec, std::int64_t servers);

}  // namespace hocket::sim
