// Events that the controller sends: commands, and what it reports (event/event.hpp). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/prose.hpp"
#include "event/reason.hpp"
#include "event/tuning.hpp"

namespace hocket::event {

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
  // The parts of the target that the request names are delegated to the member: until RECALL_IO, it may begin further
  // operations there without a grant. It reports them in batches (START_IO.delegation).
  bool delegated = false;
};

// Answers ASK_CORES.
struct CoresFor {
  static constexpr std::string_view name = "CORES_FOR";
  std::string job;
  bool wait = false;         // other applications are returning cores: another answer follows
  std::int64_t missing = 0;  // cores that it needs beyond the free ones
  Duration waited{};
};

// Asks the sender of HELD_NODES to change the allocation. The controller uses no core of the released nodes from
// then on. HELD_NODES answers with what the application has then.
struct ChangeAllocation {
  static constexpr std::string_view name = "CHANGE_ALLOCATION";
  std::string allocation;
  std::string release;     // nodes to give back, "NODE NODE …"; "": none
  std::int64_t cores = 0;  // to ask for beyond those of the allocation
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

// Recalls a delegation, because another application asks for the target. RETURN_IO answers it at once; a member that
// does not answer within its lease loses the delegation (LEASE_EXPIRED).
struct RecallIo {
  static constexpr std::string_view name = "RECALL_IO";
  RequestId request;       // whose GRANT_IO brought the delegation
  std::string because_of;  // the application that asks
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
  std::string methods{};
  std::string leave{};  // as in RESIZE: processes of these nodes leave first, as far as MPI's worlds permit
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

// Has an I/O server order accesses by another scheduler, also those that wait. SCHEDULER_USED answers.
struct UseScheduler {
  static constexpr std::string_view name = "USE_SCHEDULER";
  std::string scheduler;          // "": the one with which the server was started
  std::int64_t data_servers = 0;  // as in SET_SERVER
  std::int64_t stripe_bytes = 0;
  std::string scheduler_by{};  // who chose it (event/chooser.hpp)
};

// Answers ASK_APPLICATION.
struct ApplicationFor {
  static constexpr std::string_view name = "APPLICATION_FOR";
  std::string pids;            // as asked
  std::int64_t pid = 0;        // the one of them that is the application's; 0: none is
  std::string application;     // its name
  std::int64_t processes = 0;  // of the application, as its members have said
  std::int64_t weight = 1;     // as in APPLICATION_WEIGHT
};

// Tells an I/O server the weight of an application: under `wfq`, applications with calls that wait get bytes in
// proportion to their weights. The weight of an application is 1 until the server is told another one.
struct ApplicationWeight {
  static constexpr std::string_view name = "APPLICATION_WEIGHT";
  std::string application;
  std::int64_t weight = 1;
};
inline constexpr std::int64_t most_application_weight = 1000;

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
  Duration silent{};       // time since its last heartbeat
  std::string instance{};  // as in SERVER
};

// Refuses a request. `text` says why and what to do.
struct Refused {
  static constexpr std::string_view name = "REFUSED";
  Prose text;
};

}  // namespace hocket::event
