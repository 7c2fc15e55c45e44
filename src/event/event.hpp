// The events that the parts of hocket tell each other, and the commands, which are events too (CLARISSE, section
// III-B).
//
// Plain structs. Each names itself (`name`) and lists its fields once (`fields`); the wire, the trace, the filters and
// the tools read that list and nothing else. A new field goes at the end and has a default: older readers ignore it.
//
// Pure: no clock, no socket, no encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace hocket::event {

// A property of an event, as filters and tools see it. Times and durations are int64 nanoseconds with a `_ns` name.
using Value = std::variant<std::int64_t, double, bool, std::string>;
using Properties = std::vector<std::pair<std::string, Value>>;

// ---- application → controller ------------------------------------------------------------------------------------

// The first event of a member: who it is.
struct Hello {
  static constexpr std::string_view name = "HELLO";
  std::string job;          // the same for all members of an application (one `hocket run`)
  std::string application;  // the name asked for; WELCOME tells the one that was given
  std::string program;      // path of the executable
  std::string mpi;          // "mpich", "openmpi"; "" for a tool
  std::string version;      // hocket's
  std::int64_t pid = 0;
  std::int64_t processes = 0;  // size of the member's world; 0 where another member counts it already, and for tools
};

// A process group is about to do an I/O operation and asks for a grant (CLARISSE, section IV-B, step 4).
struct StartIo {
  static constexpr std::string_view name = "START_IO";
  RequestId request;
  std::string target;  // what is shared, e.g. "dev:8:1"
  std::string file;
  std::string operation;   // the MPI routine, e.g. "MPI_File_write_at_all"
  std::int64_t bytes = 0;  // of all processes; 0 where not known before
  // What was prepared for the I/O phase that this belongs to (CALCioM, section III-C): the bytes of all processes from
  // here to its end; 0: not known. And all that was said of it, "KEY=VALUE" in a line each.
  std::int64_t phase_bytes = 0;
  std::string info{};
};

// The operation of START_IO has ended, or is given up (CLARISSE, section IV-B, step 9).
struct FinishIo {
  static constexpr std::string_view name = "FINISH_IO";
  RequestId request;
  Duration io{};            // time in the operation, without the wait for the grant
  std::int64_t bytes = 0;   // moved by the asking rank
  bool phase_over = false;  // no further operation of this phase follows: nothing need be kept for it
  Duration idle{};          // at the end, since the last access that the request covers
};

// The holder of a grant still works: its lease is extended.
struct RenewIo {
  static constexpr std::string_view name = "RENEW_IO";
  RequestId request;
  std::int64_t bytes = 0;  // moved since the request by all processes, as far as known
};

// The answer to PAUSE_IO: all processes of the request have stopped in the middle of it, hold no lock of the file
// system, and wait for GRANT_IO of the same request. Where it ends before it can stop, FINISH_IO is the answer.
struct PausedIo {
  static constexpr std::string_view name = "PAUSED_IO";
  RequestId request;
  std::int64_t bytes = 0;   // moved since the request by all processes, as far as known
  std::int64_t round = -1;  // of the collective access after which they stopped; -1: between two accesses
};

// A whole I/O phase has ended: the monitor's report (P_io = T_cpu + T_comm + T_io, CLARISSE+FlexMPI, Eq. 1).
struct IoPhase {
  static constexpr std::string_view name = "IO_PHASE";
  std::int64_t index = 0;  // counted up from 0 in the member
  Time start{};            // of the first operation, wait for the grant included
  Time end{};              // of the last operation
  Duration io{};           // in I/O operations of the reporting rank
  Duration wait{};         // for grants
  Duration cpu{};          // since the end of the previous phase (or MPI_Init): neither MPI communication nor I/O
  Duration comm{};         // since the end of the previous phase: in MPI communication
  std::int64_t operations = 0;
  std::int64_t bytes_read = 0;     // by the reporting rank
  std::int64_t bytes_written = 0;  // by the reporting rank
  std::string target;              // of the phase's last operation
  std::int64_t iteration = -1;     // done at the last control point before its end; -1: the program has none
  std::int64_t processes = 0;      // that computed then; 0: not told
  std::int64_t control_every = 0;  // iterations between its control points; 0: not known
  double flop = 0;                 // of all processes since the previous phase, counted; 0: not known
  // When the reporting process was in I/O, and when it waited: "START:LENGTH:BUSY …", nanoseconds since `start`, in
  // order; ":BUSY" where that is less than the length. Both "": not told, `io` and `wait` are all that is known.
  std::string io_intervals{};
  std::string wait_intervals{};
  // The I/O of the reporting process alone, beside others of its application: it counts as busy time, and is no I/O
  // phase of the application, which the process that speaks for it reports.
  bool of_one_process = false;
  // These are sums over all processes of a file, the reporting one included, and the largest of a process, from their
  // starts to the end of the last access of the phase after which all of them told it.
  std::int64_t told_processes = 0;  // 0: not told
  Duration all_cpu{};
  Duration all_comm{};
  Duration cpu_most{};
  Duration comm_most{};
};

// Iterations between two control points of a malleable program, whose processes stayed the same: reported about once a
// second, so that a program is known that does no I/O, or does it once an hour.
struct Iterations {
  static constexpr std::string_view name = "ITERATIONS";
  std::int64_t iteration = 0;      // done at the later control point
  std::int64_t iterations = 0;     // since the earlier one, which is that of the report before, or a later one
  std::int64_t processes = 0;      // that computed them
  std::int64_t control_every = 0;  // iterations between control points; 0: not known
  Duration elapsed{};
  Duration cpu{};   // of the reporting rank, in neither MPI communication nor I/O nor waiting for grants
  Duration comm{};  // of the reporting rank, in MPI communication
};

// The application can be resized; its first process says so when it computes for the first time, and after each
// reconfiguration (then perhaps another process). RECONFIGURE goes to the member that said it last.
struct Malleable {
  static constexpr std::string_view name = "MALLEABLE";
  std::int64_t processes = 0;  // that compute
  std::int64_t iteration = 0;
  std::int64_t sleeping = 0;      // processes that wait to be used again, without using a core
  std::string method;             // e.g. "merge single, collective blocking": what a resize will use
  double flop_per_iteration = 0;  // of all processes, as the application declared it; 0: not known
};

// A reconfiguration has ended: done, or given up with the application unchanged. One record each (Proteo, section 4.2).
struct Reconfiguration {
  static constexpr std::string_view name = "RECONFIGURATION";
  RequestId request;  // of RECONFIGURE; 0: the application's own wish
  bool done = false;
  std::string reason;                   // why it was given up; "" where it is done
  std::int64_t sources = 0;             // processes before
  std::int64_t targets = 0;             // processes after; what was asked for where it was given up
  std::int64_t iteration = 0;           // at which the targets went on
  std::string spawn;                    // "merge" or "baseline"
  std::string spawn_strategy;           // "plain", "single", "async", …
  std::string redistribution;           // "collective", "p2p", "rma-lock", "rma-lockall"
  std::string redistribution_strategy;  // "blocking", "wait-sources", "wait-targets", "thread"
  Time start{};                         // the control point that began with it
  Duration wait{};                      // from the request to that
  Duration spawning{};                  // until all new processes are in one communicator with the sources
  Duration spawning_stopped{};          // the part of it in which the application stood still
  Duration constant{};                  // redistribution of constant data
  Duration constant_stopped{};          // the part of it in which the application stood still
  Duration variable{};                  // redistribution of variable data; the application stands still
  Duration resuming{};                  // new communicators, arrays in place
  Duration stopped{};                   // all in all, the time that the application stood still
  std::int64_t started = 0;             // new processes
  std::int64_t woken = 0;               // processes that slept and are used again
  std::int64_t ended = 0;               // processes that ended
  std::int64_t put_to_sleep = 0;
  std::int64_t bytes_moved = 0;  // from one process to another, all of them
  std::int64_t bytes_kept = 0;   // that stayed in their process
};

// New processes of the application are to be started outside of its MPI (strategy "join"): on the node of the asking
// process, with its program, arguments, environment and working directory, and HOCKET_JOIN = "REQUEST PORT". As a
// command it goes to no member: the daemon itself starts them.
struct StartProcesses {
  static constexpr std::string_view name = "START_PROCESSES";
  RequestId request;
  std::int64_t count = 0;
  std::string port;      // where they connect to: the asking process's, handed on as it is
  std::int64_t pid = 0;  // of the asking process: stamped by the agent, never believed from a client
  AppId app;             // in the command
  std::string places;    // "NODE[:CORE] …", one each; "": anywhere
};

// A process that was started so has initialised and is about to connect.
struct ProcessReady {
  static constexpr std::string_view name = "PROCESS_READY";
  RequestId request;
};

// Processes that were started for a request are not wanted any more, or could not be used: they are to end.
struct StopProcesses {
  static constexpr std::string_view name = "STOP_PROCESSES";
  RequestId request;
  AppId app;  // in the command
};

// The member leaves in order. Sums over all its processes.
struct Bye {
  static constexpr std::string_view name = "BYE";
  Duration cpu{};
  Duration comm{};
  Duration io{};
  Duration wait{};
  std::int64_t io_calls = 0;
  std::int64_t comm_calls = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::int64_t processes = 0;  // that were summed over; 0: not told
  Duration cpu_most{};         // the largest of a process
  Duration comm_most{};
};

// An application says the oldest epoch of the server map that its files still use (runtime/server_map.hpp); 0: none of
// them uses servers any more.
struct MapAdopted {
  static constexpr std::string_view name = "MAP_ADOPTED";
  std::int64_t epoch = 0;
};

// ---- I/O server → controller -------------------------------------------------------------------------------------

// An I/O server is there, and may be put into the server map. Said once by its member, after HELLO.
struct Server {
  static constexpr std::string_view name = "SERVER";
  std::string server;             // its name: letters, digits, '.', '_' and '-'
  std::string addresses;          // "unix:/path tcp:host:port"
  std::string directory;          // below which it opens files; absolute
  std::int64_t buffer_bytes = 0;  // that it holds at most
  bool write_behind = false;      // it answers before data are in the file
  std::int64_t pid = 0;           // stamped by the agent, never believed from a client
};

// What a server has done since it said so last (src/server/load.hpp). Sent after work, at most every 50 ms, and not at
// all while it is idle.
struct ServerLoad {
  static constexpr std::string_view name = "SERVER_LOAD";
  std::int64_t operations = 0;  // of clients, carried out on the file
  std::int64_t bytes = 0;
  Duration service{};           // that those took, without the time in the queue
  std::int64_t queue = 0;       // now
  std::int64_t held_bytes = 0;  // now
  Duration oldest{};            // since the access began that has been under way longest; 0: none is
};

// ---- node agent → controller -------------------------------------------------------------------------------------

// The member's connection ended without BYE: its process died, or it was dropped for `reason`.
struct Lost {
  static constexpr std::string_view name = "LOST";
  std::string reason;
};

// A process that was to join an application ended before it did, or could not be started.
struct ProcessFailed {
  static constexpr std::string_view name = "PROCESS_FAILED";
  RequestId request;
  AppId app;
  std::string reason;
};

// What is known of the times of an application at one number of processes (CLARISSE+FlexMPI, section 4.1). Of the
// daemon, from its store of profiles, one for each point after HELLO; never believed from a member.
struct Profile {
  static constexpr std::string_view name = "PROFILE";
  AppId app;
  std::int64_t processes = 0;
  double iteration_s = 0;         // T_cpu + T_comm of one iteration, mean
  double iteration_spread_s = 0;  // standard deviation
  double io_s = 0;                // T_io of one I/O phase, undisturbed, mean; 0: does none
  double io_spread_s = 0;
  std::int64_t samples = 0;       // phases that were measured
  double flop_per_iteration = 0;  // of all processes; 0: not known
  double comm_s = -1;             // the part of iteration_s that is T_comm, mean over the processes; -1: not known
};

// Time has passed: a deadline that the coordinator asked for.
struct Tick {
  static constexpr std::string_view name = "TICK";
};

// The operator chooses the policies: names joined by `+` (policy/combination.hpp), each of which sets its kind. Where
// the policy is "", they stay as they are.
struct SetPolicy {
  static constexpr std::string_view name = "SET_POLICY";
  std::string policy;
  std::string metric{};  // that `dynamic` minimises from now on (policy/metric.hpp); "": as before
};

// Resize an application. The answer is RECONFIGURATION, or REFUSED.
struct Resize {
  static constexpr std::string_view name = "RESIZE";
  std::string application;     // its name
  std::int64_t processes = 0;  // as many as it is to have; with `relative`, how many more (or, below 0, fewer)
  bool relative = false;
  std::int64_t at_iteration = 0;  // not before so many iterations are done; 0: at the next control point
  std::string places;             // where new processes go, "NODE[:CORE] …", one each; "": anywhere
};

// A tool takes back what it asked for with RESIZE, as it does by closing its connection. The coordinator hands it on to
// the application, with `request`; the answer is RECONFIGURATION where it had not begun, and else this, with `begun`.
struct WithdrawResize {
  static constexpr std::string_view name = "WITHDRAW_RESIZE";
  RequestId request;  // of RECONFIGURE; none from a tool
  bool begun = false;
};

// A tool takes an I/O server out of the server map, or puts it in again. No answer but REFUSED: LIST tells.
struct SetServer {
  static constexpr std::string_view name = "SET_SERVER";
  std::string server;
  std::string action;  // "drain", "add"
};

// ---- controller → application ------------------------------------------------------------------------------------

struct Welcome {
  static constexpr std::string_view name = "WELCOME";
  AppId app;
  std::string application;  // the name it goes by: the one asked for, made unique
  std::string policy;       // access policy in force
  Duration lease{};         // a grant not renewed for so long is taken back
};

// The request waits. Sent at once, and again every keep-alive while it lasts, so that a waiting application knows that
// the controller lives.
struct QueuedIo {
  static constexpr std::string_view name = "QUEUED_IO";
  RequestId request;
  std::int64_t position = 0;  // 1: next
  std::string behind;         // the application that holds the target
};

struct GrantIo {
  static constexpr std::string_view name = "GRANT_IO";
  RequestId request;
  Duration waited{};  // in the queue
  std::string target;
  double share = 1;  // of the target's bandwidth that the application is to use at most, while others have it too
};

// The request is to stop in the middle, as soon as it can, for the sake of another application (CALCioM, section
// III-A). Said once; GRANT_IO of the same request lets it go on.
struct PauseIo {
  static constexpr std::string_view name = "PAUSE_IO";
  RequestId request;
  std::string because_of;  // the application that comes first
  std::string target;
};

// Become `processes` processes at the control point of `at_iteration`, or at the next one where that is 0.
struct Reconfigure {
  static constexpr std::string_view name = "RECONFIGURE";
  RequestId request;
  std::int64_t processes = 0;
  std::int64_t at_iteration = 0;
  std::string places;
  Time asked{};  // when it was asked for
};

// All processes that were asked for with START_PROCESSES are ready to connect; or they will not come. Where one of them
// ends after all were ready and before the reconfiguration is over, it is said again, with `failed`.
struct ProcessesReady {
  static constexpr std::string_view name = "PROCESSES_READY";
  RequestId request;
  std::string failed;  // why they will not come; "" where they are ready
};

// The server map of a new epoch (event/server_map.hpp), to every member of every application: after WELCOME, where
// there is a map, and at each change.
struct NewServerMap {
  static constexpr std::string_view name = "SERVER_MAP";
  std::int64_t epoch = 0;
  std::string text;
};

// The holder did not renew its lease in time; others may go on.
struct LeaseExpired {
  static constexpr std::string_view name = "LEASE_EXPIRED";
  RequestId request;
  std::string application;
  std::string target;
};

// What a policy for cores decided, or why it left a conflict alone. Goes to no member: the trace and subscribers have
// it.
struct Decision {
  static constexpr std::string_view name = "DECISION";
  std::int64_t number = 0;  // counted up from 1
  std::string policy;
  std::string decided_for;  // name of the application that is changed
  std::string because_of;   // of the other one of a conflict; "" where there is none
  std::string action;       // "expand", "shrink", "return", "reclaim", "cancel", "leave", "estimate"
  std::int64_t from = 0;    // processes
  std::int64_t to = 0;      // processes
  std::int64_t at_iteration = 0;
  std::int64_t return_at_iteration = 0;  // 0: for good
  Time conflict{};                       // predicted start of the overlap; 0: none
  Duration overlap{};                    // predicted
  Time start_before{};                   // of its next I/O phase, predicted as if nothing were done; 0: not known
  Time start_after{};                    // the same with what was decided
  Duration period_after{};               // predicted I/O period with what was decided; 0: as before
  std::string text;                      // one sentence for people, with the numbers
};

// A prediction that a decision rested on, held against what happened; or, of quantity "cores", that cores which a
// decision gave away came back, which is no prediction.
struct Outcome {
  static constexpr std::string_view name = "OUTCOME";
  std::int64_t decision = 0;  // its number
  std::string decided_for;
  std::string quantity;    // "start of the next I/O phase", "I/O period", "cores"
  double predicted_s = 0;  // from the decision on
  double actual_s = 0;
  // The error is within the uncertainty that was assumed, and within half an I/O period: beyond that a prediction says
  // nothing, however uncertain it called itself.
  bool met = false;
  std::string text;           // one sentence for people, with the numbers
  double uncertainty_s = -1;  // plus or minus, that was assumed; -1: not told
  double period_s = 0;        // I/O period that was predicted, or expected at the decision; 0: not known
};

// No period or cycle fits an application's I/O phases, or one fits again. Goes to no member, as DECISION.
struct Model {
  static constexpr std::string_view name = "MODEL";
  std::string application;
  std::string model;  // as in APPLICATION
  std::string text;   // one sentence for people, with the numbers
};

// A server is slower than its peers and was taken out of the map (coordinator/slow_servers.hpp). Goes to no member, as
// DECISION. A monitor of somebody else's may send it too (CLARISSE, section IV-A), with the server alone.
struct SlowIoServer {
  static constexpr std::string_view name = "SLOW_IO_SERVER";
  std::string server;
  Duration service{};        // of one of its operations, in its last report
  Duration peers{};          // of one of its peers', of like size
  std::int64_t reports = 0;  // that said so, running
  Duration hold_off{};       // after which it is tried again
  std::string text;          // one sentence for people, with the numbers
};

// A request was refused; `text` says why and what to do.
struct Refused {
  static constexpr std::string_view name = "REFUSED";
  std::string text;
};

// ---- tools -------------------------------------------------------------------------------------------------------

// Ask for every event that matches `filter` (event/filter.hpp has the grammar). `subscription` is the caller's number.
struct Subscribe {
  static constexpr std::string_view name = "SUBSCRIBE";
  std::int64_t subscription = 0;
  std::string filter;
};

struct Unsubscribe {
  static constexpr std::string_view name = "UNSUBSCRIBE";
  std::int64_t subscription = 0;
};

// Ask for the list of applications: one APPLICATION each, then one DAEMON.
struct List {
  static constexpr std::string_view name = "LIST";
};

// Ask for the last decisions: DECISION and OUTCOME, oldest first, then one DAEMON.
struct Explain {
  static constexpr std::string_view name = "EXPLAIN";
  std::int64_t count = 0;   // of decisions; 0: all that are kept
  std::string application;  // only of this one; "": of all
};

// One running application as the model knows it.
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
  Duration period{};         // mean, start to start of a cycle of phases; 0: not known yet
  Duration period_spread{};  // standard deviation
  Duration duration{};       // mean I/O time of a period
  Duration duration_spread{};
  double io_ratio = 0;  // CLARISSE+FlexMPI, Eq. 3
  Duration io{};        // since the start: while at least one process is in I/O
  Duration wait{};      // since the start: while at least one waits and none is in I/O
  Duration cpu{};
  Duration comm{};
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  Time last_io_start{};
  Time last_io_end{};
  Time next_start{};            // of the next predicted phase; 0: none
  Duration next_uncertainty{};  // plus or minus
  bool malleable = false;
  std::int64_t sleeping = 0;          // processes that wait to be used again
  std::int64_t resizing_to = 0;       // processes; 0: no resize is under way
  std::int64_t reconfigurations = 0;  // done
  double flop_per_iteration = 0;      // of all processes; 0: not known
  std::string flop_source;            // how it is known: "counters", "declared", "profile"; "": it is not
  std::int64_t map_epoch = 0;         // the oldest of the server map that it uses; 0: it uses no I/O servers
  Duration cpu_most{};                // the largest of a process; `cpu` and `comm` are means over `told_processes`
  Duration comm_most{};
  std::string model;                  // whether its I/O phases have a period: "learning", "regular", "irregular"
  std::int64_t phases_in_period = 0;  // of the cycle; 0: there was no phase
  std::int64_t told_processes = 0;    // that have told what they computed and communicated
};

// One I/O server as the controller knows it; in lists, after the applications.
struct IoServer {
  static constexpr std::string_view name = "IO_SERVER";
  std::string server;
  std::string state;       // "up" (in the map), "drained", "slow", "lost"
  Time since{};            // of that state
  std::int64_t epoch = 0;  // of the map that it came into with it, or was left out of
  std::string directory;
  std::string addresses;
  std::int64_t pid = 0;
  std::int64_t buffer_bytes = 0;
  bool write_behind = false;
  std::int64_t operations = 0;  // since it came
  std::int64_t bytes = 0;       // since it came
  Duration service{};           // since it came
  std::int64_t queue = 0;       // when it reported last
  std::int64_t held_bytes = 0;  // when it reported last
  double operations_per_s = 0;  // over the last second
  double bytes_per_s = 0;       // over the last second
  Duration busy{};              // servicing in the last second, of all its threads
  Duration last_service{};      // of one operation, in its last report; 0: none yet
  Time back{};                  // when a slow one is tried again; 0: it is not slow
};

// The daemon itself; also ends a list.
struct Daemon {
  static constexpr std::string_view name = "DAEMON";
  std::string node;
  std::string version;
  std::string policy;
  std::string trace;  // path, "" where none is written
  std::int64_t pid = 0;
  std::int64_t applications = 0;
  std::int64_t events = 0;  // since the start
  Time started{};
  Time now{};
  std::string trace_error;     // why the trace ends early; "" while it is whole
  std::int64_t cores = 0;      // that applications may be resized to use
  std::int64_t map_epoch = 0;  // of the server map; 0: no I/O server was ever there
  std::string metric;          // that `dynamic` minimises
};

// Events that matched a subscription of this member and were left out because it did not read fast enough.
struct EventsLost {
  static constexpr std::string_view name = "EVENTS_LOST";
  std::int64_t events = 0;  // since the last such report
};

// An event of somebody else's: any type name that hocket does not use itself, any properties.
struct User {
  static constexpr std::string_view name = "USER";
  std::string type;
  Properties properties;
};

// TICK is what an event is at first, because it costs nothing to make.
using AnyEvent =
    std::variant<Tick, Hello, StartIo, FinishIo, RenewIo, PausedIo, IoPhase, Iterations, Malleable, Reconfiguration,
                 StartProcesses, ProcessReady, StopProcesses, Bye, MapAdopted, Server, ServerLoad, Lost, ProcessFailed,
                 Profile, SetPolicy, Resize, WithdrawResize, SetServer, Welcome, QueuedIo, GrantIo, PauseIo,
                 Reconfigure, ProcessesReady, NewServerMap, LeaseExpired, Decision, Outcome, Model, SlowIoServer,
                 Refused, Subscribe, Unsubscribe, List, Explain, Application, IoServer, Daemon, EventsLost, User>;

namespace detail {

template <class E, class... Types>
constexpr std::size_t index_in(const std::variant<Types...>*) {
  std::size_t index = 0;
  (void)((std::is_same_v<E, Types> || (++index, false)) || ...);
  return index;
}

}  // namespace detail

// Its place among the types of AnyEvent; their number where it is none of them.
template <class E>
inline constexpr std::size_t index_of = detail::index_in<E>(static_cast<const AnyEvent*>(nullptr));

// An event without its origin: one of the types above. It is read as a std::variant is, by std::visit, std::get_if and
// so on. Only how it is made, copied, moved and destroyed is its own: for so many types that takes a compiler seconds,
// and is done once, in event.cpp, instead of in every file that hands events on.
class Body : public AnyEvent {
 public:
  Body();  // TICK
  Body(const Body& other);
  Body(Body&& other) noexcept;
  Body& operator=(const Body& other);
  Body& operator=(Body&& other) noexcept;
  ~Body();

  template <class E>
  requires(index_of<E> < std::variant_size_v<AnyEvent>) Body(E e) : Body(index_of<E>, &e) {}

 private:
  // Moves from what `e` points to, an event of the type of that index.
  Body(std::size_t index, void* e);
};

// Who published an event. Stamped by the node agent (the kernel tells it who is calling), never believed from a client.
struct Origin {
  std::string node;
  std::string application;  // "" for tools, and before HELLO
  MemberId member;
};

struct Event {
  Time time{};  // when the node agent took it in
  Origin origin;
  Body body;
};

// The type name of an event: `name` of its struct, or what its publisher called it.
std::string_view type_name(const Body& body);

// An event of the type of that name with every field at its default; nothing for names that are not hocket's own.
std::optional<Body> make_body(std::string_view type);

}  // namespace hocket::event
