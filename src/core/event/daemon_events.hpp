// Events that node agents, hocketd and tools send to the controller (event/event.hpp). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace hocket::event {

// Reports that a member's connection ended without BYE: its process died, or the agent dropped it for `reason`.
struct Lost {
  static constexpr std::string_view name = "LOST";
  std::string reason;
};

// Reports that the process of an I/O server has ended: it will not write any more. Unlike LOST it comes from the kernel
// (pidfd), and not from the end of a connection.
struct ServerEnded {
  static constexpr std::string_view name = "SERVER_ENDED";
  std::string server;
  std::int64_t pid = 0;
  std::string instance{};  // as in SERVER: a process id alone may be that of a server on another node
};

// Reports that a process that was to join an application could not be started, or ended before it joined.
struct ProcessFailed {
  static constexpr std::string_view name = "PROCESS_FAILED";
  RequestId request;
  AppId app;
  std::string reason;
};

// Reports the cores of a node of the cluster: the leader's own at its start, another one's when its agent joins. The
// daemon sends it unless hocket.toml has `nodes`.
struct NodeCores {
  static constexpr std::string_view name = "NODE_CORES";
  std::string node;
  std::int64_t cores = 0;  // 0: its agent has left
};

// Reports at which place of the list of leaders this hocketd stands: the daemon knows it from its own list, or an agent
// found it there. A leader at a later place than the first only grants turns, for as long as it runs: another leader
// may give out the same cores.
struct LeaderPlace {
  static constexpr std::string_view name = "LEADER_PLACE";
  std::int64_t place = 1;  // from 1, the first
  std::string told_by;     // node of the agent; "": the daemon's own list
};

// Holds the known times of an application at one number of processes (CLARISSE+FlexMPI, section 4.1). The daemon sends
// one for each point in its store of profiles, after HELLO; a member's is never believed. As a command it carries what
// was measured on line, for the store.
struct Profile {
  static constexpr std::string_view name = "PROFILE";
  AppId app;
  std::int64_t processes = 0;
  double iteration_s = 0;         // T_cpu + T_comm of one iteration, mean
  double iteration_spread_s = 0;  // standard deviation
  double io_s = 0;                // T_io of one undisturbed I/O phase, mean; 0: no I/O
  double io_spread_s = 0;
  std::int64_t samples = 0;       // number of measured phases
  double flop_per_iteration = 0;  // of all processes; 0: not known
  double comm_s = -1;             // part of iteration_s that is T_comm, mean over the processes; -1: not known
};

// Reports that a deadline that the coordinator asked for has come.
struct Tick {
  static constexpr std::string_view name = "TICK";
};

// Changes the policies, on behalf of the operator. `policy` has names joined by `+` (policy/combination.hpp), each of
// which sets its kind. If it is "", the policies stay as they are. With `application` or `target`, `policy` is one
// access policy for these only, or "default": what holds for others holds for them again.
struct SetPolicy {
  static constexpr std::string_view name = "SET_POLICY";
  std::string policy;
  std::string metric{};       // for `cost` and `dynamic` from now on (policy/metric.hpp); "": as before
  std::string application{};  // its name; "": all
  std::string target{};       // "": all
  bool allow = false;         // with `target`: applications may have another policy there
};

// Requests a resize of an application. RECONFIGURATION or REFUSED answers it.
struct Resize {
  static constexpr std::string_view name = "RESIZE";
  std::string application;     // its name
  std::int64_t processes = 0;  // wanted; with `relative`, how many more or (below 0) fewer
  bool relative = false;
  std::int64_t at_iteration = 0;  // earliest iteration; 0: at the next control point
  std::string places;             // of new processes, "NODE[:CORE] …", one each; "": anywhere
  std::string methods{};          // names, as hocket_malleable_request has them; "": those of the job
  std::string leave{};  // nodes to be left first, "NODE[=PROCESSES] …", the first before the others; "": any
};

// Withdraws a tool's RESIZE, as closing the tool's connection does too. The coordinator forwards it to the application,
// with `request`. If the application had not begun, RECONFIGURATION answers it, else this event with `begun`.
struct WithdrawResize {
  static constexpr std::string_view name = "WITHDRAW_RESIZE";
  RequestId request;  // of RECONFIGURE; none from a tool
  bool begun = false;
};

// Asks for cores for an application that is about to start (CLARISSE+FlexMPI, sections 3 and 4.4). CORES answers it at
// once, and again when the wait is over. The cores are kept for the application until its HELLO, for a while.
struct AskCores {
  static constexpr std::string_view name = "ASK_CORES";
  std::string job;  // as its HELLO will name it
  std::string application;
  std::int64_t processes = 0;
  Duration longest{};  // time limit of the wait
};

// Reports the nodes and cores that the resource manager has given to a job, for the application that runs in it. The
// tool that starts the application sends it before the start, at each change, and to each daemon that it reaches.
// Policies give the application these cores alone.
struct HeldNodes {
  static constexpr std::string_view name = "HELD_NODES";
  std::string job;         // as its HELLO will name it
  std::string allocation;  // the resource manager's own name of it; applications that name the same one share it
  std::string nodes;       // "NODE=CORES …"; "": not known, so policies use what the controller knows
  // Nodes that the application keeps in any case; it gives others back after it has left them. 0: it gives none back.
  std::int64_t least_nodes = 0;
  std::int64_t most_nodes = 0;  // to which a permanent expansion may enlarge it; 0: it asks for none
  Duration waited{};            // from CHANGE_ALLOCATION to the cores that it asked for; 0: this reports none
  Prose text;                   // why the last CHANGE_ALLOCATION was not carried out; "": it was, or there was none
};

// Removes an I/O server from the server map, adds it again, or assigns servers to an application, for a tool. Only a
// failure is answered, by REFUSED; LIST shows the state.
struct SetServer {
  static constexpr std::string_view name = "SET_SERVER";
  std::string server;         // its name; with "assign", "NAME,NAME", a number of servers, or "all"
  std::string action;         // "drain", "add", "assign", "scheduler", "weight"
  std::string application{};  // of "assign" and "weight": its name
  // The scheduler of "scheduler", for one server or "all". Each that knows it answers with SCHEDULER_USED. "default":
  // what policy, configuration, or the server's start say.
  std::string scheduler{};
  std::int64_t data_servers = 0;  // of the file system, for TWINS; 0: as before
  std::int64_t stripe_bytes = 0;  // of a file on one of those; 0: as before
  // The weight of "weight" beside other applications, 1 to most_application_weight. 0: what policy or configuration
  // say, else 1.
  std::int64_t weight = 0;
};

// Requests the start of an I/O server on a node, for a tool. The daemon of that node runs hocket-server, as its own
// user. SERVER follows when the server has joined, SERVER_FAILED if it does not; REFUSED if nothing was started.
struct StartServer {
  static constexpr std::string_view name = "START_SERVER";
  std::string server;     // its name; "": the daemon chooses one that is free
  std::string node;       // on which it is started
  std::string arguments;  // of hocket-server, one a line, without its name and runtime directory
  std::string token{};    // of the tool, repeated in SERVER_STARTED and SERVER_FAILED
};

// Requests that an I/O server ends in order (SIGTERM), for a tool. Only a failure is answered, by REFUSED.
struct StopServer {
  static constexpr std::string_view name = "STOP_SERVER";
  std::string server;
  std::string instance{};  // as in SERVER; "": any
};

// Reports that the process of a server that START_SERVER asked for runs. It has not joined yet.
struct ServerStarted {
  static constexpr std::string_view name = "SERVER_STARTED";
  std::string server;
  std::string node;
  std::int64_t pid = 0;
  std::string token{};
};

// Reports that a server that START_SERVER asked for could not be started, or has ended before it joined.
struct ServerFailed {
  static constexpr std::string_view name = "SERVER_FAILED";
  std::string server;
  std::string node;
  std::string reason;
  std::string token{};
};

// Asks the agent of a node for the fingerprint of a program there. No member sends it.
struct AskFingerprint {
  static constexpr std::string_view name = "ASK_FINGERPRINT";
  AppId app;
  std::string program;  // path of the executable
};

// Answers ASK_FINGERPRINT.
struct ProgramFingerprint {
  static constexpr std::string_view name = "PROGRAM_FINGERPRINT";
  AppId app;
  std::string program;
  std::string sha256;  // of the executable's bytes, lower-case hexadecimal; "": it cannot be read
};

}  // namespace hocket::event
