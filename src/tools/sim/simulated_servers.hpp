// The I/O servers of a scenario: the maps by which applications use them, the operations under way, the load that is
// injected, and what each server reports of its work.
//
// A server divides its time equally among the operations under way at it. Rates change only if an operation begins or
// ends, or if load does, and each is a closed form (server_work.hpp). So the cost is O(servers) for each change,
// whatever the number of clients and requests.
//
// Reports: each server has one every `report_every` while operations are under way, as hocket-server does, but only
// `reports_after_change` of them after each change of load, map or operation. Later ones would be the same. So one
// report covers the rest of an operation, at its end.
//
// Deterministic, not thread-safe. It knows neither clock nor coordinator: simulation.hpp drives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "event/event.hpp"
#include "sim/scenario.hpp"
#include "sim/server_work.hpp"

namespace hocket::sim {

class SimulatedServers {
 public:
  using ApplicationNumber = std::uint32_t;  // index of an application in the scenario
  using ServerNumber = std::uint32_t;       // index of a server, in the order of targets and of their servers
  static constexpr Duration report_every = std::chrono::milliseconds{50};
  // One more than the detector of slow servers needs in a row (model/slow_servers.hpp).
  static constexpr int reports_after_change = 4;

  // `scenario` must outlive the object; its times are relative to `start`. Without a map an application uses all
  // servers, as in a simulation without a coordinator.
  SimulatedServers(const Scenario& scenario, Time start);

  std::size_t size() const { return servers_.size(); }
  // Returns the SERVER message of a server. The coordinator's list has a directory for each target.
  event::Server about(ServerNumber server) const;
  static constexpr const char* address = "sim";  // nobody connects
  // Returns the directory of a target's servers.
  static std::string directory_of(const TargetSpec& target) { return "/" + target.name; }

  // Stores a SERVER_MAP. The application adopts it at its next control point.
  void receive(ApplicationNumber app, const event::NewServerMap& map);
  // Adopts the newest map at a control point. Returns its epoch if the application used another one before.
  std::optional<std::int64_t> adopt(ApplicationNumber app);

  // Begins or resumes an operation of so many bytes in all; it goes through the servers of the target that are in the
  // adopted map. Without any it is not an operation of servers: uses() is false.
  void begin(ApplicationNumber app, std::size_t target, double bytes, std::int64_t clients, double request_bytes);
  // Ends or suspends the operation. Does nothing if none is under way.
  void end(ApplicationNumber app);
  bool uses(ApplicationNumber app) const { return !operations_[app].servers.empty(); }
  // Returns the rate in bytes per second at which the servers take the operation now; infinity if they are no limit.
  double rate(ApplicationNumber app) const;
  // Counts bytes that the operation has moved since the last call. Precondition: uses(app).
  void count(ApplicationNumber app, double bytes);

  // Returns when take_load() changes a delay; none if no load begins or ends later.
  std::optional<Time> next_load_change() const;
  // Applies the loads that begin or end by now. The caller counts the bytes moved so far before.
  void take_load(Time now);
  // Returns when reports are due; none if there is nothing to report.
  std::optional<Time> next_report(Time now);
  // Returns the report of a server and forgets what it covers; none if it has handled no request.
  std::optional<event::ServerLoad> report(ServerNumber server);
  // Called after all servers have reported, with the number of their reports.
  void reported(Time now, std::size_t count);

 private:
  struct ServerState {
    const ServerSpec* spec;
    std::size_t target;
    double delay_s = 0;
    std::int64_t operations = 0;  // under way
    // Not reported yet.
    double requests = 0;
    double bytes = 0;
    double service_s = 0;
  };
  struct ApplicationMap {
    std::int64_t epoch = 0;
    std::vector<ServerNumber> servers;  // in use, of all targets
  };
  struct Operation {
    std::vector<ServerNumber> servers;  // none: no operation is under way
    double bytes = 0;
    ServerPart part;         // of each server
    std::int64_t epoch = 0;  // of its map
    // What its servers reported of the last one holds for it, too.
    bool is_like(const Operation& last) const {
      return epoch == last.epoch && servers.size() == last.servers.size() && part == last.part;
    }
  };
  void changed() { reports_left_ = reports_after_change; }

  const Scenario& scenario_;
  std::vector<ServerState> servers_;
  std::unordered_map<std::string, ServerNumber> by_name_;
  std::vector<ApplicationMap> newest_, adopted_;  // by application
  std::vector<Operation> operations_;             // by application
  std::vector<Operation> last_;                   // the last ones that ended, by application
  bool load_changed_ = false;                     // since the last operation began
  std::size_t under_way_ = 0;
  std::vector<Time> load_changes_;  // ascending
  std::size_t next_change_ = 0;     // in `load_changes_`
  Time start_;
  int reports_left_ = 0;
  Time last_report_{};
};

}  // namespace hocket::sim
