// Servers policies steer which I/O servers are used (CLARISSE, sections III-C and IV-A). The server map is their
// control variable.
//
// A servers policy is, like an access policy, a function without state of its own: it reads the view, and everything
// that it can do is in the ServerDecision that it returns. The coordinator carries that out
// (coordinator/servers/deciding.cpp), and ignores with a reason what it cannot do. Pure: no I/O, clock or randomness.
// To add a policy, write a file with a `decide` function and one `ServerPolicy` record. Then declare the record below
// and add it to the list in combination.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocation/allocation.hpp"
#include "event/event.hpp"
#include "event/server_map.hpp"
#include "model/cluster.hpp"
#include "model/slow_servers.hpp"

namespace hocket::policy {

// An I/O server, as its reports show it. The texts are valid during the call only.
struct ServerStatus {
  std::string_view name;
  MemberId member;         // none if it is lost
  std::string_view state;  // as in IO_SERVER: "up", "drained", "slow", "hung", "lost"
  std::string_view directory;
  std::string_view file_system;  // the target of that of the directory, "dev:8:1"; "": not known
  std::string_view node;         // on which it runs; "": not known
  bool write_behind = false;
  std::int64_t queue = 0;       // at its last report
  std::int64_t held_bytes = 0;  // at its last report
  double operations_per_s = 0;  // over the last second
  double bytes_per_s = 0;       // over the last second
  Duration busy{};              // service time in the last second, of all its threads
  Duration last_service{};      // mean of one operation in its last report with any; 0: none yet
  // Set if its last report makes it slower than its peers (model/slow_servers.hpp).
  std::optional<model::SlowServers::Finding> slow{};
  int weight = event::full_weight;  // its share of the stripes of files, beside the others'
  std::string_view scheduler{};     // request scheduler; "": it carries out no forwarded calls
  std::int64_t forward_queue = 0;   // of these calls, at its last report
};

// An application to which servers are assigned. It uses those of them that are in the map; all while none is.
struct AssignedServers {
  AppId application;
  std::vector<std::string_view> servers;  // none: it accesses its files directly, or no server fits
  bool by_hand = false;                   // the policy cannot change it
  std::int64_t epoch = 0;                 // of its newest map
  std::int64_t adopted = 0;               // oldest epoch that it uses; 0: none
  bool none_fits = false;                 // as in ServerChange
};

// Returns the node of an application that forwards: it has one member, `hocket forward`, beside its processes.
inline std::string_view node_of(const model::Application& application) {
  return application.members.empty() ? std::string_view{} : std::string_view{application.members.front()->node};
}

// Returns true if the server can forward accesses of the application: both are on one node, because descriptors are
// passed, and on one file system, as far as known.
inline bool fits(std::string_view file_system_of_server, std::string_view node_of_server,
                 const model::Application& application) {
  const std::string_view node = application.forwards ? node_of(application) : std::string_view{};
  return (node.empty() || node_of_server.empty() || node == node_of_server) &&
         (file_system_of_server.empty() || application.file_system.empty() ||
          file_system_of_server == application.file_system);
}

// An application whose collective I/O a policy has tuned.
struct TunedApplication {
  AppId application;
  event::Tuning wanted;     // as the policy has set it
  event::Tuning used;       // by the last collective access that reported it; empty: none yet
  std::string_view hinted;  // settings for which hints of the program go first, "aggregators, method"
};

// Settings of the policies that give forwarded applications numbers of servers (arbitration.cpp), from hocket.toml.
struct ArbitrationSettings {
  allocation::AllocationRules rules;
  // The whole machine, by whose ratio `static` goes; 0: the nodes of the applications, and the servers of the pool.
  std::int64_t system_nodes = 0;
  std::int64_t system_servers = 0;
};

// The read-only state from which a servers policy decides. Its references are valid during the call only.
struct ServersView {
  const model::Cluster& cluster;
  std::span<const ServerStatus> servers;  // in order of arrival, lost ones included
  std::span<const AssignedServers> assigned;
  std::span<const TunedApplication> tuned;
  Time now;
  ArbitrationSettings arbitration{};
  // The applications that forward, the servers that are up, or the policy are not those of its last decision.
  bool set_changed = true;
};

// One change that the policy wants.
struct ServerChange {
  enum class Action {
    set_aside,          // the server is slow: it leaves the map for a hold-off
    drain,              // the server leaves the map until it is added
    add,                // a drained or slow server enters the map again
    assign,             // the application uses these servers only; none: it uses all, or none if it is `direct`
    weigh,              // the server gets this share of the stripes of files
    tune,               // the collective I/O of the application is done so, from its next control point on
    schedule,           // the server orders accesses by this scheduler
    weigh_application,  // the application gets this weight in servers whose scheduler has weights
  };
  Action action = Action::set_aside;
  std::string server{};                               // all that are about a server
  std::optional<model::SlowServers::Finding> slow{};  // of `set_aside`: the measurement, if there is one
  AppId application{};                                // of `assign`, `tune`, and `weigh_application`
  std::vector<std::string> servers{};                 // of `assign`
  std::string text{};                                 // why, in the words of a policy in Python
  // The weight is 1 to event::full_weight for `weigh`, 1 to event::most_application_weight for `weigh_application`.
  std::int64_t weight = 0;
  // Of `tune`. What is not given is as hints and defaults say.
  std::optional<std::int64_t> aggregators{};   // 1 to the processes of the application
  std::optional<std::int64_t> buffer_bytes{};  // event::smallest_buffer_bytes to event::largest_tuned_buffer_bytes
  std::optional<std::string> method{};         // one of event::tuned_methods
  // Of `assign`: the application accesses its files directly. Only one that forwards may.
  bool direct = false;
  // Of `assign`: no server that is up is on the application's file system. It uses none, and that is as if none ran.
  bool none_fits = false;
  // Of `assign`: the number, as an arbitration policy explains it. The coordinator adds the servers.
  std::optional<event::ServersGiven> given{};
  std::string scheduler{};  // of `schedule`: request_scheduler::algorithm_names
};

// Everything that a servers policy wants done after one event.
struct ServerDecision {
  std::vector<ServerChange> changes;
};

// The coordinator calls this after each event that changed what is known of servers or of who uses them: SERVER,
// SERVER_LOAD, SERVER_ENDED, SET_SERVER, SLOW_IO_SERVER, MAP_ADOPTED, HELLO, IO_PHASE, BYE, LOST, SET_POLICY. Servers
// send SERVER_LOAD also as a heartbeat, so a policy is asked at least every second.
using DecideServers = ServerDecision (*)(const ServersView& view, const event::Event& event);

struct ServerPolicy {
  std::string_view name;
  std::string_view summary;  // one line, for people
  DecideServers decide;
  // It gives each application that forwards a number of servers. So it is also asked whenever `set_changed`, whatever
  // the event, and again after its own decision has changed the set.
  bool arbitrates = false;
};

// The built-in policies. Each is defined in the file of its name. `set_aside` is in force unless another is named.
extern const ServerPolicy set_aside;
extern const ServerPolicy weigh;
// Those of arbitration.cpp, in the order of allocation::policies.
extern const std::array<ServerPolicy, std::size(allocation::policies)> arbitration_policies;

// Returns all built-in servers policies, in the order in which tools list them.
std::span<const ServerPolicy* const> server_policies();

}  // namespace hocket::policy
