// Events are the messages that the parts of hocket send each other. Commands are events too (CLARISSE, section III-B).
//
// Each event is a plain struct with a type name (`name`) and one list of its fields (`fields`, event/fields.hpp). The
// wire, the trace, the filters and the tools read that list and nothing else. A new field goes at the end and has a
// default, because older readers ignore it and older traces lack it.
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
#include "event/reason.hpp"
#include "event/tuning.hpp"

namespace hocket::event {

// A text for people. Its wording may change at any time. So no program depends on it, and a replay does not compare it.
struct Prose : std::string {
  using std::string::string;
  Prose() = default;
  Prose(std::string text) : std::string(std::move(text)) {}
};

// ---- application → controller ------------------------------------------------------------------------------------

// The most bytes in `file_system` of HELLO and SERVER. A longer one counts as none.
inline constexpr std::size_t longest_file_system = 64;

// Introduces a member to the controller. It is the member's first event; WELCOME answers it.
struct Hello {
  static constexpr std::string_view name = "HELLO";
  std::string job;          // the same for all members of an application (one `hocket run`)
  std::string application;  // the requested name; WELCOME returns the assigned one
  std::string program;      // path of the executable
  std::string mpi;          // "mpich", "openmpi"; "" for a tool
  std::string version;      // of hocket
  std::int64_t pid = 0;
  std::int64_t processes = 0;  // size of the member's world; 0 if another member reports it, and for tools
  // Of an application whose files' data go through I/O servers (`hocket forward`). Servers hold none of its data, so it
  // adopts each server map at once, and may have no server.
  bool forwards = false;
  std::int64_t compute_nodes = 0;  // that it runs on; 0: not known
  // Its bandwidth in bytes/s by number of servers, "0:195700000 1:77600000" (allocation/choices.hpp); "" or another
  // text: nobody has measured it.
  std::string curve{};
  std::int64_t peer_pid = 0;  // process that has connected; stamped by the agent, never taken from a client
  // Of an application that forwards: the target of the file system whose files are forwarded, "dev:8:1". A policy gives
  // it servers of this file system only. "": it did not say, so all servers fit.
  std::string file_system{};
};

// Requests a grant: a process group is about to start an I/O operation (CLARISSE, section IV-B, step 4). GRANT_IO or
// QUEUED_IO answers it at once.
struct StartIo {
  static constexpr std::string_view name = "START_IO";
  RequestId request;
  std::string target;  // the shared storage resource, e.g. "dev:8:1"
  std::string file;
  std::string operation;   // the MPI routine, e.g. "MPI_File_write_at_all"
  std::int64_t bytes = 0;  // of all processes; 0: not known in advance
  // Information that the application prepared for the enclosing I/O phase (CALCioM, section III-C). `phase_bytes` are
  // the bytes of all processes from here to the end of the phase; 0: not known. `info` has one "KEY=VALUE" per line.
  std::int64_t phase_bytes = 0;
  std::string info{};
  // The parts of it, as far as they were prepared; 0: not known. Between two parts the application may stop.
  std::int64_t files = 0;            // still to be accessed in the phase, the present one included
  std::int64_t rounds = 0;           // of collective buffering in each file
  std::int64_t bytes_per_round = 0;  // of all processes
  // The parts of the target that the operation uses, "ost3,ost7" (event/part_names.hpp); "": the whole target. If
  // `parts_error` says why they cannot be meant, the whole target is used, too.
  std::string parts{};
  std::string parts_error{};
  // The target of the file system on which the file lies, if `target` is a name that the application gave instead
  // (hocket_target). If the operator set a policy for it, the request is for that target.
  std::string file_system{};
};

// Tells what the application has prepared for its I/O phase, between two requests (CALCioM, section III-C): an inner
// step begins and knows more, or the prepared phase is complete. The fields are those of START_IO.
struct InformIo {
  static constexpr std::string_view name = "INFORM_IO";
  std::int64_t phase_bytes = 0;
  std::string info{};
  std::int64_t files = 0;
  std::int64_t rounds = 0;
  std::int64_t bytes_per_round = 0;
  bool phase_over = false;  // the prepared phase is complete: no idle hold is needed
  std::string error{};  // what the program called or announced wrongly, and what follows; the other fields are unset
};

// Ends a request: its operation has finished or was given up (CLARISSE, section IV-B, step 9).
struct FinishIo {
  static constexpr std::string_view name = "FINISH_IO";
  RequestId request;
  Duration io{};            // time in the operation, without the wait for the grant
  std::int64_t bytes = 0;   // moved by the requesting rank
  bool phase_over = false;  // no operation of this phase follows, so no idle hold is needed
  Duration idle{};          // from the last access under the request to its end
  bool unstopped = false;   // answers PAUSE_IO of one access of the MPI library: it has no place to stop before its end
};

// Extends the lease of a grant, because its holder still works.
struct RenewIo {
  static constexpr std::string_view name = "RENEW_IO";
  RequestId request;
  std::int64_t bytes = 0;  // moved since the request by all processes, as far as known
};

// Answers PAUSE_IO. All processes of the request have stopped in the middle of it, hold no lock of the file system, and
// wait for GRANT_IO of the same request. If the operation ends before it can stop, FINISH_IO is the answer.
struct PausedIo {
  static constexpr std::string_view name = "PAUSED_IO";
  RequestId request;
  std::int64_t bytes = 0;   // moved since the request by all processes, as far as known
  std::int64_t round = -1;  // of the collective access after which they stopped; -1: between two accesses
};

// Asks how long a request would wait if it were sent now (CALCioM, section III-B). An application that learns it may
// compute first, and come back. EXPECTED_WAIT answers at once, a tool too; nothing is queued.
struct AskWait {
  static constexpr std::string_view name = "ASK_WAIT";
  std::int64_t number = 0;  // chosen by the caller; the answer repeats it
  std::string target;
  std::int64_t bytes = 0;     // of all processes, that the caller would access; 0: not known
  std::string parts{};        // of the target, as in START_IO
  std::string file_system{};  // as in START_IO
};

// Reports an I/O phase that has ended, as the monitor measured it (P_io = T_cpu + T_comm + T_io, CLARISSE+FlexMPI,
// Eq. 1).
struct IoPhase {
  static constexpr std::string_view name = "IO_PHASE";
  std::int64_t index = 0;  // counts up from 0 in each member
  Time start{};            // of the first operation, including its wait for the grant
  Time end{};              // of the last operation
  Duration io{};           // time in I/O operations, of the reporting rank
  Duration wait{};         // time of waiting for grants
  Duration cpu{};          // since the end of the previous phase (or MPI_Init), without communication and I/O
  Duration comm{};         // since the end of the previous phase, in MPI communication
  std::int64_t operations = 0;
  std::int64_t bytes_read = 0;     // by the reporting rank
  std::int64_t bytes_written = 0;  // by the reporting rank
  std::string target;              // of the phase's last operation
  std::int64_t iteration = -1;     // iterations done at the last control point before the end; -1: no control points
  std::int64_t processes = 0;      // that computed then; 0: not reported
  std::int64_t control_every = 0;  // iterations between its control points; 0: not known
  double flop = 0;                 // of all processes since the previous phase, counted; 0: not known
  // Intervals in which the reporting process was in I/O, and in which it waited: "START:LENGTH:BUSY …" in order, in
  // nanoseconds since `start`. ":BUSY" is left out if it equals the length. If both are "", only `io` and `wait` are
  // known.
  std::string io_intervals{};
  std::string wait_intervals{};
  // True if this is the I/O of the reporting process alone, beside other processes of its application. It counts as
  // busy time only. Another process reports the I/O phases of the application.
  bool of_one_process = false;
  // Sums over all processes of a file, the reporting one included, and the largest value of one process. They cover the
  // time from the start of the processes to the last access of the phase after which all of them reported.
  std::int64_t told_processes = 0;  // that reported; 0: none
  Duration all_cpu{};
  Duration all_comm{};
  Duration cpu_most{};
  Duration comm_most{};
  std::int64_t announced_left = 0;  // prepared bytes of all processes that are still to come, after a gap
};

// Reports iterations between two control points of a malleable program while its processes stay the same. It comes
// about once a second, so that the controller also knows programs that do no I/O, or do it once an hour.
struct Iterations {
  static constexpr std::string_view name = "ITERATIONS";
  std::int64_t iteration = 0;      // done at the later control point
  std::int64_t iterations = 0;     // since the earlier control point: that of the previous report, or a later one
  std::int64_t processes = 0;      // number of processes that computed them
  std::int64_t control_every = 0;  // iterations between control points; 0: not known
  Duration elapsed{};
  Duration cpu{};   // of the reporting rank, without MPI communication, I/O and waiting for grants
  Duration comm{};  // of the reporting rank, in MPI communication
};

// Declares that the application can be resized. Its first process sends this when it first computes, and after each
// reconfiguration (then perhaps from another process). RECONFIGURE goes to the member that sent it last.
struct Malleable {
  static constexpr std::string_view name = "MALLEABLE";
  std::int64_t processes = 0;  // that compute
  std::int64_t iteration = 0;
  std::int64_t sleeping = 0;      // processes that wait to be reused and occupy no core
  std::string method;             // of a resize, e.g. "merge single, collective blocking"
  double flop_per_iteration = 0;  // of all processes, as the application declared it; 0: not known
};

// Records one reconfiguration that has ended: done, or given up with the application unchanged (Proteo, section 4.2).
struct Reconfiguration {
  static constexpr std::string_view name = "RECONFIGURATION";
  RequestId request;  // of RECONFIGURE; 0: the application decided by itself
  bool done = false;
  Prose reason;                         // why it was given up; "": it was done
  std::int64_t sources = 0;             // processes before
  std::int64_t targets = 0;             // processes after it; the requested number if it was given up
  std::int64_t iteration = 0;           // at which the targets continued
  std::string spawn;                    // "merge" or "baseline"
  std::string spawn_strategy;           // "plain", "single", "async", …
  std::string redistribution;           // "collective", "p2p", "rma-lock", "rma-lockall"
  std::string redistribution_strategy;  // "blocking", "wait-sources", "wait-targets", "thread"
  Time start{};                         // of the control point that carried it out
  Duration wait{};                      // from the request to `start`
  Duration spawning{};                  // until the merged communicator has all new processes
  Duration spawning_stopped{};          // part of it in which the application was suspended
  Duration constant{};                  // redistribution of constant data
  Duration constant_stopped{};          // part of it in which the application was suspended
  Duration variable{};                  // redistribution of variable data; the application is suspended
  Duration resuming{};                  // new communicators, and arrays put in place
  Duration stopped{};                   // total time in which the application was suspended
  std::int64_t started = 0;             // new processes
  std::int64_t woken = 0;               // sleeping processes that are used again
  std::int64_t ended = 0;               // processes that ended
  std::int64_t put_to_sleep = 0;
  std::int64_t bytes_moved = 0;  // between processes, in total
  std::int64_t bytes_kept = 0;   // that stayed in their process, in total
};

// Requests new processes of the application that are started outside of its MPI job (strategy "join"). They run on the
// node of the requesting process, with its program, arguments, environment and working directory, and with HOCKET_JOIN
// = "REQUEST PORT". As a command it goes to no member: the daemon itself starts the processes.
struct StartProcesses {
  static constexpr std::string_view name = "START_PROCESSES";
  RequestId request;
  std::int64_t count = 0;
  std::string port;      // MPI port of the requesting process, passed on unchanged
  std::int64_t pid = 0;  // of the requesting process; stamped by the agent, never taken from a client
  AppId app;             // set in the command
  std::string places;    // "NODE[:CORE] …", one per process; "": anywhere
};

// Reports that a process started by START_PROCESSES has initialised and is about to connect.
struct ProcessReady {
  static constexpr std::string_view name = "PROCESS_READY";
  RequestId request;
};

// Ends the processes that were started for a request, because they are not needed any more or could not be used.
struct StopProcesses {
  static constexpr std::string_view name = "STOP_PROCESSES";
  RequestId request;
  AppId app;  // set in the command
};

// Reports that the member leaves regularly. Fields are sums over all its processes, but for the `_most` ones.
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
  std::int64_t processes = 0;  // in the sums; 0: not reported
  Duration cpu_most{};         // the largest of a process
  Duration comm_most{};
};

// Reports the oldest epoch of the server map that the application's files still use (process/server_map.hpp). 0: no
// file uses servers any more.
struct MapAdopted {
  static constexpr std::string_view name = "MAP_ADOPTED";
  std::int64_t epoch = 0;
  // Of an application with a tuning: what the last collective access used. Empty: it has none.
  Tuning used{};
  std::string hinted{};  // settings of the tuning for which hints of the program went first, "aggregators, method"
};

// Reports that a rank lost its file domains as an aggregator of collective I/O, because it was slower than its peers
// (collective_plan/slow_aggregators.hpp). Rank 0 of the file sends it.
struct SlowAggregator {
  static constexpr std::string_view name = "SLOW_AGGREGATOR";
  std::string file;
  std::int64_t rank = 0;  // in the communicator of the file
  Duration service{};     // mean time of one of its accesses of the file
  Duration peers{};       // the same of the other aggregators, their median
  Duration hold_off{};    // it gets file domains again after this time
};

// ---- I/O server → controller -------------------------------------------------------------------------------------

// Announces an I/O server that may be added to the server map. Its member sends this once, after HELLO.
struct Server {
  static constexpr std::string_view name = "SERVER";
  std::string server;             // its name: letters, digits, '.', '_' and '-'
  std::string addresses;          // "unix:/path tcp:host:port"
  std::string directory;          // absolute; the server opens files below it only
  std::int64_t buffer_bytes = 0;  // most that it buffers
  bool write_behind = false;      // it answers before data are in the file
  std::int64_t pid = 0;           // stamped by the agent, never taken from a client
  // Promised longest time between two SERVER_LOAD while the server's loop runs. 0: none, so silence means nothing.
  Duration heartbeat{};
  std::int64_t exchange_bytes = 0;  // most memory for data sets; 0: it keeps none
  std::string scheduler{};          // request scheduler of forwarded calls (core/request_scheduler); "": none
  // The target of the file system of `directory`, "dev:8:1". It is unique on one node, as hocketd is. "": it did not
  // say, so the server fits all applications.
  std::string file_system{};
};

// Reports what a server has done since its last report (src/data/server/load.hpp). The server sends it after work, at
// most every 50 ms, and as a heartbeat while it has nothing to report.
struct ServerLoad {
  static constexpr std::string_view name = "SERVER_LOAD";
  std::int64_t operations = 0;  // of clients, executed on the file
  std::int64_t bytes = 0;
  Duration service{};           // time that they took, without the time in the queue
  std::int64_t queue = 0;       // now
  std::int64_t held_bytes = 0;  // now
  Duration oldest{};            // age of the oldest access under way; 0: none
  // Calls of programs under `hocket forward`. The last two are as of now.
  std::int64_t forwarded = 0;        // carried out
  std::int64_t forwarded_bytes = 0;  // moved by those
  std::int64_t system_calls = 0;     // made for those
  std::int64_t merged = 0;           // of those, carried out in one system call with others
  Duration forward_waited{};         // from arrival to dispatch, sum over those
  std::int64_t forward_queue = 0;    // that wait
  // Sums since the server's start for each application, "CALLS BYTES WAITED_NS NAME" a line, those with the most bytes
  // first. Sent at most once a second, when they have changed; "": as before.
  std::string forward_shares{};
};

// Reports that a server orders forwarded calls by another scheduler now, or why not. It answers USE_SCHEDULER.
struct SchedulerUsed {
  static constexpr std::string_view name = "SCHEDULER_USED";
  std::string server;              // its name
  std::string scheduler{};         // in force now
  std::string previous{};          // before
  std::int64_t forward_queue = 0;  // calls that waited, and have moved to it
  Prose error{};                   // why nothing has changed; "": it has
};

// Asks to which application a client of a server belongs: the process, or its nearest ancestor that is one's first
// member. APPLICATION_FOR answers. Clients do not name their applications themselves, because the schedulers divide
// the server between these.
struct AskApplication {
  static constexpr std::string_view name = "ASK_APPLICATION";
  std::string pids;  // of the process and its ancestors on the server's node, nearest first: "812 811 1"
};

// Reports that a server has stored everything that it held of earlier epochs, and from now on holds only for clients
// that use the map of this epoch. It answers SERVER_MAP.
struct MapStored {
  static constexpr std::string_view name = "MAP_STORED";
  std::int64_t epoch = 0;
};

// Reports what a server that is drained still keeps of data sets, when that has changed. It answers MOVE_DATA_SETS. If
// `kept` is 0, the server may be ended without a loss.
struct DataSetsLeft {
  static constexpr std::string_view name = "DATA_SETS_LEFT";
  std::int64_t epoch = 0;  // of the MOVE_DATA_SETS
  std::int64_t kept = 0;   // versions of data sets, and parts of other servers' versions
  std::int64_t bytes = 0;  // of those
  Prose text;              // what they wait for, for people
};

// ---- node agent, daemon and tools → controller -------------------------------------------------------------------

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
};

// Reports that a process that was to join an application could not be started, or ended before it joined.
struct ProcessFailed {
  static constexpr std::string_view name = "PROCESS_FAILED";
  RequestId request;
  AppId app;
  std::string reason;
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

// Removes an I/O server from the server map, adds it again, or assigns servers to an application, for a tool. Only a
// failure is answered, by REFUSED; LIST shows the state.
struct SetServer {
  static constexpr std::string_view name = "SET_SERVER";
  std::string server;         // its name; with "assign", "NAME,NAME", a number of servers, or "all"
  std::string action;         // "drain", "add", "assign", "scheduler"
  std::string application{};  // of "assign": its name
  // Of "scheduler", for one server or "all". Each that knows it answers with SCHEDULER_USED.
  std::string scheduler{};
  std::int64_t data_servers = 0;  // of the file system, for TWINS; 0: as before
  std::int64_t stripe_bytes = 0;  // of a file on one of those; 0: as before
};

// ---- controller → application ------------------------------------------------------------------------------------

// Answers HELLO.
struct Welcome {
  static constexpr std::string_view name = "WELCOME";
  AppId app;
  std::string application;     // the assigned name: the requested one, made unique
  std::string policy;          // access policy in force
  Duration lease{};            // time after which a grant that is not renewed is revoked
  std::string held_targets{};  // as in HELD_TARGETS
};

// Names the targets for which the operator set a policy that no application may leave. Every member of an application
// learns them in WELCOME, and from this command at each change. A member that was told not to coordinate still requests
// grants for them.
struct HeldTargets {
  static constexpr std::string_view name = "HELD_TARGETS";
  std::string targets;  // one a line
};

// Reports that the request waits. The controller sends this at once, and again at each keep-alive while the wait lasts,
// so that a waiting application knows that the controller lives.
struct QueuedIo {
  static constexpr std::string_view name = "QUEUED_IO";
  RequestId request;
  std::int64_t position = 0;  // in the queue; 1: next
  std::string behind;         // the application that holds the target
};

// Grants the request: the operation may begin or, after PAUSED_IO, resume. For a granted request it is sent again when
// the bandwidth share changes.
struct GrantIo {
  static constexpr std::string_view name = "GRANT_IO";
  RequestId request;
  Duration waited{};  // time in the queue
  std::string target;
  double share = 1;  // bandwidth share: most of the target's bandwidth, while others hold it too
};

// Answers ASK_CORES.
struct CoresFor {
  static constexpr std::string_view name = "CORES_FOR";
  std::string job;
  bool wait = false;         // other applications are returning cores: another answer follows
  std::int64_t missing = 0;  // cores that it needs beyond the free ones
  Duration waited{};
};

// Answers ASK_WAIT.
struct ExpectedWait {
  static constexpr std::string_view name = "EXPECTED_WAIT";
  std::int64_t number = 0;  // of the question
  std::string target;
  Duration wait{};         // until the grant
  Duration uncertainty{};  // plus or minus, a standard deviation; -1 ns: an application ahead is unknown
  std::int64_t ahead = 0;  // applications that are served before
};

// Preempts the request for another application: it stops in the middle of its operation as soon as it can (CALCioM,
// section III-A). Sent once. GRANT_IO of the same request resumes it.
struct PauseIo {
  static constexpr std::string_view name = "PAUSE_IO";
  RequestId request;
  std::string because_of;  // the application that is served first
  std::string target;
};

// Commands the application to become `processes` processes at the control point of `at_iteration`; 0: the next one.
struct Reconfigure {
  static constexpr std::string_view name = "RECONFIGURE";
  RequestId request;
  std::int64_t processes = 0;
  std::int64_t at_iteration = 0;
  std::string places;
  Time asked{};  // time of the request
};

// Reports that all processes of a START_PROCESSES are ready to connect, or that they will not come. If one of them ends
// after all were ready and before the reconfiguration is over, it is sent again, with `failed`.
struct ProcessesReady {
  static constexpr std::string_view name = "PROCESSES_READY";
  RequestId request;
  Prose failed;  // why they will not come; "": they are ready
};

// Distributes the server map of a new epoch (event/server_map.hpp) to every member of every application: after WELCOME,
// if there is a map, and at each change. Servers that are not assigned to its application are set aside in it. I/O
// servers get the map of all before, if one of them writes behind: they store what they hold, and answer MAP_STORED.
struct NewServerMap {
  static constexpr std::string_view name = "SERVER_MAP";
  std::int64_t epoch = 0;
  std::string text;
  // For I/O servers: an application has a map of its own, so a byte may have several servers, and none holds any.
  bool write_through = false;
  Tuning tuning{};  // for an application
  // For an application that forwards: it is to access its files directly, whatever `text` says.
  bool direct = false;
};

// Tells an I/O server which servers keep data sets and which are drained, while any is. A drained one moves its data
// sets to the others, and answers DATA_SETS_LEFT. The others move what has parts at a drained one.
struct MoveDataSets {
  static constexpr std::string_view name = "MOVE_DATA_SETS";
  std::int64_t epoch = 0;  // counts such messages
  std::string text;        // the servers that stay, as a map (event/server_map.hpp)
  std::string drained;     // names of the drained ones, "s1 s2"; "": none is any more
};

// Has an I/O server order forwarded calls by another scheduler, also those that wait. SCHEDULER_USED answers.
struct UseScheduler {
  static constexpr std::string_view name = "USE_SCHEDULER";
  std::string scheduler;
  std::int64_t data_servers = 0;  // as in SET_SERVER
  std::int64_t stripe_bytes = 0;
};

// Answers ASK_APPLICATION.
struct ApplicationFor {
  static constexpr std::string_view name = "APPLICATION_FOR";
  std::string pids;            // as asked
  std::int64_t pid = 0;        // the one of them that is the application's; 0: none is
  std::string application;     // its name
  std::int64_t processes = 0;  // of the application, as its members have said
};

// Reports that a holder did not renew its lease in time, so that its grant is revoked and others may be served.
struct LeaseExpired {
  static constexpr std::string_view name = "LEASE_EXPIRED";
  RequestId request;
  std::string application;
  std::string target;
};

// Reports one decision of a policy, with the facts behind it. It goes to no member; the trace and subscribers get it.
// It concerns a core allocation, a conflict that was left alone, or access to a target ("interrupt", "wait",
// "interfere", "delay", "deadlock"; "hold": what I/O servers hold for the application waits). "doubt", "ignore" and
// "believe" are about what it announces. An "estimate" compares the I/O of an application that leaves with its I/O
// without coordination. explain/explain.hpp makes the sentences.
struct Decision {
  static constexpr std::string_view name = "DECISION";
  std::int64_t number = 0;  // counts up from 1
  std::string policy;
  std::string decided_for;  // name of the application that the decision is about
  std::string because_of;   // name of the other application; "": none
  std::string action;       // for cores "expand", "shrink", "return", "reclaim", "cancel", "leave"
  std::int64_t from = 0;    // processes
  std::int64_t to = 0;      // processes
  std::int64_t at_iteration = 0;
  std::int64_t return_at_iteration = 0;  // 0: for good
  Time conflict{};                       // predicted start of the overlap; 0: none
  Duration overlap{};                    // predicted
  Time start_before{};                   // predicted start of its next I/O phase without the change; 0: not known
  Time start_after{};                    // the same with the change
  Duration period_after{};               // predicted I/O period with the change; 0: as before
  Prose text;                            // of a policy in Python; in traces of version 1 a whole sentence
  Reason reason;                         // why it was decided
  Reason obstacle;                       // why a change or conflict was left alone, or a decision was given up
  std::int64_t wanted = 0;               // processes of a change that was left alone; 0: there was none
};

// The quantities that an OUTCOME can compare: the start of the next I/O phase in seconds after the decision, the I/O
// period in seconds, and cores.
namespace quantity {
inline constexpr std::string_view phase_start = "phase-start";
inline constexpr std::string_view period = "period";
inline constexpr std::string_view cores = "cores";
}  // namespace quantity

// Compares a prediction behind a decision with what happened. With the quantity `cores` it is no prediction: it reports
// that the cores of a decision came back.
struct Outcome {
  static constexpr std::string_view name = "OUTCOME";
  std::int64_t decision = 0;  // number of the DECISION
  std::string decided_for;
  std::string quantity;    // one of those above
  double predicted_s = 0;  // in its unit
  double actual_s = 0;
  // True if the error is within the assumed uncertainty, and within half an I/O period. Beyond half a period a
  // prediction says nothing, however large its uncertainty.
  bool met = false;
  Prose text;                 // a sentence in traces of version 1
  double uncertainty_s = -1;  // assumed, plus or minus; -1: not reported
  double period_s = 0;        // predicted I/O period, or the one at the decision; 0: not known
  // "missing": the phase has not come. "ended", "returned": the application did, so cores came back. "": the phase or
  // the period came.
  std::string how;
  std::int64_t processes = 0;  // that the application has, if it has returned to its size
};

// Reports that no period or cycle fits an application's I/O phases, or that one fits again. It goes to no member, as
// DECISION.
struct Model {
  static constexpr std::string_view name = "MODEL";
  std::string application;
  std::string model;         // as in APPLICATION
  Prose text;                // a sentence in traces of version 1
  Duration period{};         // mean, from phase to phase
  Duration period_spread{};  // standard deviation
};

// Reports that a server is slower than its peers and was removed from the map (model/slow_servers.hpp).
// It goes to no member, as DECISION. An external monitor may send it too (CLARISSE, section IV-A), with `server` alone.
struct SlowIoServer {
  static constexpr std::string_view name = "SLOW_IO_SERVER";
  std::string server;
  Duration service{};        // mean of one operation in its last report
  Duration peers{};          // the same of its peers, for operations of similar size
  std::int64_t reports = 0;  // consecutive reports that showed it
  Duration hold_off{};       // time after which it is tried again
  Prose text;                // a sentence in traces of version 1
};

// Reports that a server has sent no heartbeat for too long. The daemon kills it, and reports its end (SERVER_ENDED).
// The map keeps the server until then, because it may still carry out writes.
struct HungIoServer {
  static constexpr std::string_view name = "HUNG_IO_SERVER";
  std::string server;
  std::int64_t pid = 0;
  Duration silent{};  // time since its last heartbeat
};

// Refuses a request. `text` says why and what to do.
struct Refused {
  static constexpr std::string_view name = "REFUSED";
  Prose text;
};

// ---- tools -------------------------------------------------------------------------------------------------------

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

// All event types. TICK comes first, so it is the default: it costs nothing to construct.
using AnyEvent =
    std::variant<Tick, Hello, StartIo, InformIo, FinishIo, RenewIo, PausedIo, AskWait, IoPhase, Iterations, Malleable,
                 Reconfiguration, StartProcesses, ProcessReady, StopProcesses, Bye, MapAdopted, SlowAggregator, Server,
                 ServerLoad, SchedulerUsed, AskApplication, MapStored, DataSetsLeft, Lost, ServerEnded, ProcessFailed,
                 Profile, SetPolicy, Resize, WithdrawResize, AskCores, SetServer, Welcome, HeldTargets, QueuedIo,
                 GrantIo, CoresFor, ExpectedWait, PauseIo, Reconfigure, ProcessesReady, NewServerMap, MoveDataSets,
                 UseScheduler, ApplicationFor, LeaseExpired, Decision, Outcome, Model, SlowIoServer, HungIoServer,
                 Refused, Subscribe, Unsubscribe, List, Explain, Application, IoServer, Daemon, EventsLost, User>;

namespace detail {

template <class E, class... Types>
constexpr std::size_t index_in(const std::variant<Types...>*) {
  std::size_t index = 0;
  (void)((std::is_same_v<E, Types> || (++index, false)) || ...);
  return index;
}

}  // namespace detail

// The index of E among the types of AnyEvent. If E is none of them, it is the number of types.
template <class E>
inline constexpr std::size_t index_of = detail::index_in<E>(static_cast<const AnyEvent*>(nullptr));

// An event without its origin: one of the types above. It is read like any std::variant, by std::visit, std::get_if and
// so on. Only construction, copy, move and destruction are its own. For so many types they take a compiler seconds, so
// event.cpp compiles them once, instead of every file that passes events on.
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
  // Moves from `*e`, which is an event of the type with that index.
  Body(std::size_t index, void* e);
};

// The publisher of an event. The node agent stamps it, because the kernel identifies the calling process. What a client
// claims is never believed.
struct Origin {
  std::string node;
  std::string application;  // "" for tools, and before HELLO
  MemberId member;
};

// One event as the daemon, the trace and subscribers see it.
struct Event {
  Time time{};  // when the node agent received it
  Origin origin;
  Body body;
};

// Returns the type name of an event: `name` of its struct, or User::type. It is valid as long as the body.
std::string_view type_name(const Body& body);

// Returns an event of the named type with every field at its default; nothing if the name is not one of hocket's own.
std::optional<Body> make_body(std::string_view type);

}  // namespace hocket::event
