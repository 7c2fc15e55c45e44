// Events that applications and I/O servers send to the controller (event/event.hpp). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/prose.hpp"
#include "event/tuning.hpp"

namespace hocket::event {

// ---- application → controller ---------------------------------------------------------------------------------------

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
  // Of an application that forwards: the target of the file system whose files are forwarded. A policy gives
  // it servers of this file system only. "": it did not say, so all servers fit.
  std::string file_system{};
  // The member knows delegations: GRANT_IO may carry one. False for older libraries, and for what is no application.
  bool delegations = false;
  // As peer_pid: whose process it is, -1 if not known; and its step of Slurm, "1234.0", "" if it is in none, or the
  // node's kernel does not know.
  std::int64_t user = -1;
  std::string slurm_step{};
};

// Requests a grant: a process group is about to start an I/O operation (CLARISSE, section IV-B, step 4). GRANT_IO or
// QUEUED_IO answers it at once.
struct StartIo {
  static constexpr std::string_view name = "START_IO";
  RequestId request;
  std::string target;  // the shared storage resource, e.g. "lustre:scratch"
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
  // The request whose GRANT_IO brought the delegation under which the operation has begun: it is granted already, and
  // needs no answer. 0: the member waits for GRANT_IO.
  RequestId delegation{};
  Duration ago{};  // age of the event when it was sent: it waited in a batch; 0: it was sent at once
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
  Duration ago{};       // as in START_IO
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
  Duration ago{};           // as in START_IO
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

// Returns a delegation, in answer to RECALL_IO or by itself. The member has sent before what it had begun under it;
// such a request that has not ended is granted as any other, with a lease and pauses.
struct ReturnIo {
  static constexpr std::string_view name = "RETURN_IO";
  RequestId request;  // whose GRANT_IO brought the delegation
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
  Duration ago{};                   // as in START_IO
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
  std::string nodes{};  // on which its processes compute, "NODE=PROCESSES …" (base/places.hpp); "": not told
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
  std::string nodes{};           // on which the targets compute, "NODE=PROCESSES …" (base/places.hpp); "": not told
  std::string left{};  // places that processes have left, "NODE[:CORE] …", one each; "": none, or more than fit
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
  std::string node{};    // of the requesting process; set in the command
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

// ---- I/O server → controller ----------------------------------------------------------------------------------------

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
  std::string scheduler{};          // request scheduler (core/request_scheduler); "": it carries out no forwarded calls
  // The target of the file system of `directory` (file_system/target_name.hpp). "": the server did not say it, so it
  // fits all applications.
  std::string file_system{};
  std::string scheduler_by{};  // who chose `scheduler` (event/chooser.hpp)
  // A random number of 16 hexadecimal digits for each run of a server, also in its addresses (transport/address.hpp).
  // It tells two servers of one name apart. "": a server before this field.
  std::string instance{};
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
  // The weights of applications under `wfq` that are not 1, "WEIGHT NAME" a line. Sent with `forward_shares`.
  std::string forward_weights{};
};

// Reports that a server orders accesses by another scheduler now, or why not. It answers USE_SCHEDULER.
struct SchedulerUsed {
  static constexpr std::string_view name = "SCHEDULER_USED";
  std::string server;              // its name
  std::string scheduler{};         // in force now
  std::string previous{};          // before
  std::int64_t forward_queue = 0;  // accesses that waited, and have moved to it
  Prose error{};                   // why nothing has changed; "": it has
  std::string scheduler_by{};      // as USE_SCHEDULER said
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

}  // namespace hocket::event
