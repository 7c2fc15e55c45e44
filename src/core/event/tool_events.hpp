// Events between tools and hocketd, which no decision depends on (event/event.hpp). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/prose.hpp"
#include "event/reason.hpp"

namespace hocket::event {

// Subscribes to every event that matches `filter` (grammar: event/filter.hpp). The caller chooses `subscription`.
struct Subscribe {
  static constexpr std::string_view name = "SUBSCRIBE";
  std::int64_t subscription = 0;
  std::string filter;
};

// Ends a subscription of the caller.
struct Unsubscribe {
  static constexpr std::string_view name = "UNSUBSCRIBE";
  std::int64_t subscription = 0;
};

// Asks for the present state. The answer is one APPLICATION each, one IO_SERVER each, then one DAEMON.
struct List {
  static constexpr std::string_view name = "LIST";
};

// Asks for the last decisions. The answer is DECISION and OUTCOME events, oldest first, then one DAEMON.
struct Explain {
  static constexpr std::string_view name = "EXPLAIN";
  std::int64_t count = 0;   // of decisions; 0: all that the daemon stores
  std::string application;  // only decisions for this one; "": for all
};

// Describes one running application, as the model knows it.
struct Application {
  static constexpr std::string_view name = "APPLICATION";
  AppId app;
  std::string application;
  std::string job;
  std::string program;
  std::string mpi;
  std::string node;
  std::int64_t pid = 0;
  std::int64_t processes = 0;
  std::string state;  // "computing", "waiting", "io"
  Time since{};       // start of that state
  std::string target;
  std::int64_t phases = 0;
  Duration period{};         // mean, from start to start of a cycle of phases; 0: not known yet
  Duration period_spread{};  // standard deviation
  Duration duration{};       // mean I/O time of a period
  Duration duration_spread{};
  double io_ratio = 0;  // CLARISSE+FlexMPI, Eq. 3
  Duration io{};        // time since the start in which at least one process was in I/O
  Duration wait{};      // time since the start in which at least one waited and none was in I/O
  Duration cpu{};
  Duration comm{};
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  Time last_io_start{};
  Time last_io_end{};
  Time next_start{};            // of the next I/O phase, predicted; 0: none
  Duration next_uncertainty{};  // plus or minus
  bool malleable = false;
  std::int64_t sleeping = 0;          // processes that wait to be reused
  std::int64_t resizing_to = 0;       // processes; 0: no resize is under way
  std::int64_t reconfigurations = 0;  // done
  double flop_per_iteration = 0;      // of all processes; 0: not known
  std::string flop_source;            // of that number: "counters", "declared", "profile"; "": not known
  std::int64_t map_epoch = 0;         // oldest epoch of the server map in use; 0: no I/O servers
  Duration cpu_most{};                // largest of one process; `cpu` and `comm` are means over told_processes
  Duration comm_most{};
  std::string model;                  // of its I/O phases: "learning", "regular" (they have a period), "irregular"
  std::int64_t phases_in_period = 0;  // length of the cycle; 0: there was no phase
  std::int64_t told_processes = 0;    // that have reported their `cpu` and `comm`
  std::string policy;                 // access policy that decides about its requests for `target`
  std::string parts{};                // of `target`, "ost3,ost7"; "": all of it
  std::string servers{};              // I/O servers of its own map, "s1, s2"; "": it uses all
  std::string assigned_servers{};     // I/O servers that are assigned to it, in use or not; "": none
  bool forwards = false;              // the data of its files go through I/O servers
  std::int64_t given_servers = -1;    // how many are assigned to it; 0: it uses none; -1: it uses all
  double expected_bytes_per_s = 0;    // with these, as a policy expects; 0: not known
  std::int64_t weight = 1;            // as in APPLICATION_WEIGHT
  std::string weight_by{};            // who chose it (event/chooser.hpp)
  std::string nodes{};                // on which it has cores, "NODE=CORES …"; "": not known
  std::string delegated{};  // targets that are delegated to members of it, "nfs:home, lustre:scratch"; "": none
  std::int64_t user = -1;   // as in HELLO
  std::string slurm_step{};
};

// Describes one I/O server, as the controller knows it. In the answer to LIST it follows the applications.
struct IoServer {
  static constexpr std::string_view name = "IO_SERVER";
  std::string server;
  std::string state;    // "up", "drained", "slow", "hung", "lost"
  bool in_map = false;  // in the map that applications have; a new map waits until servers have stored what they held
  Time since{};         // start of that state
  std::int64_t epoch = 0;  // of the map that added it, or left it out
  std::string directory;
  std::string addresses;
  std::int64_t pid = 0;
  std::int64_t buffer_bytes = 0;
  bool write_behind = false;
  std::int64_t operations = 0;  // since its arrival
  std::int64_t bytes = 0;       // since its arrival
  Duration service{};           // since its arrival
  std::int64_t queue = 0;       // at its last report
  std::int64_t held_bytes = 0;  // at its last report
  double operations_per_s = 0;  // over the last second
  double bytes_per_s = 0;       // over the last second
  Duration busy{};              // service time in the last second, of all its threads
  Duration last_service{};      // mean of one operation in its last report; 0: none yet
  Time back{};                  // time at which a slow one is tried again; 0: not slow
  // Of a drained server: true while it keeps data sets, or has not said that it keeps none. The three that follow are
  // those of its DATA_SETS_LEFT.
  bool moves_data_sets = false;
  std::int64_t data_sets_left = 0;
  std::int64_t data_set_bytes_left = 0;
  Prose data_sets_text{};
  std::int64_t weight = 0;  // share of the stripes of files, in eighths of a full one, in the map of `in_map`
  // Of forwarded calls, as in SERVER_LOAD; sums since its arrival.
  std::string scheduler{};
  std::int64_t forwarded = 0;
  std::int64_t forwarded_bytes = 0;
  std::int64_t system_calls = 0;
  std::int64_t merged = 0;
  Duration forward_waited{};
  std::int64_t forward_queue = 0;
  std::string forward_shares{};
  std::string forward_weights{};
  std::string scheduler_by{};  // who chose `scheduler` (event/chooser.hpp)
  std::string node{};          // on which it runs
  std::string instance{};      // as in SERVER
};

// Describes one node whose cores the controller gives out. In the answer to LIST, nodes follow the I/O servers.
struct Node {
  static constexpr std::string_view name = "NODE";
  std::string node;
  std::int64_t cores = 0;  // 0: its agent has left
  std::int64_t taken = 0;  // of these; more than `cores` if applications started without free ones
};

// Describes the daemon itself. It also ends the answers to LIST and EXPLAIN.
struct Daemon {
  static constexpr std::string_view name = "DAEMON";
  std::string node;
  std::string version;
  std::string policy;
  std::string trace;  // path; "": none is written
  std::int64_t pid = 0;
  std::int64_t applications = 0;
  std::int64_t events = 0;  // since the start
  Time started{};
  Time now{};
  std::string trace_error;      // why the trace ends early; "": it is complete
  std::int64_t cores = 0;       // most that resized applications may use in all
  std::int64_t map_epoch = 0;   // of the server map; 0: there was never an I/O server
  std::string metric;           // minimised by `cost` and `dynamic`
  std::string target_policies;  // a line "TARGET=POLICY" for each that differs; "?" follows if applications may switch
  std::int64_t agents = 0;      // of other nodes that have joined
  std::int64_t leader_place = 1;  // in the list of leaders; above 1, it gives out no cores and changes no server maps
};

// Reports how many events of the member's subscriptions were dropped because it did not read fast enough.
struct EventsLost {
  static constexpr std::string_view name = "EVENTS_LOST";
  std::int64_t events = 0;  // dropped since the last such report
};

// Carries an event of another program, with any type name that hocket does not use itself, and any properties
// (event/properties.hpp checks them).
struct User {
  static constexpr std::string_view name = "USER";
  std::string type;
  Properties properties;
};

}  // namespace hocket::event
