// Joins: processes started outside of their application's MPI, which connect to it afterwards (strategy "join").
// Joining counts how many are ready and enforces the time limit.
//
//  START_PROCESSES (commanding member) → START_PROCESSES (the daemon) … PROCESS_READY (each) → PROCESSES_READY
//                       PROCESS_FAILED, time limit → STOP_PROCESSES (the daemon), PROCESSES_READY failed
//                       STOP_PROCESSES (application) → STOP_PROCESSES (the daemon)
//                       PROCESS_FAILED when all are ready → PROCESSES_READY failed
//
// join_states.hpp is the table of these courses.
//
// At most one join of an application is under way at a time, until a RECONFIGURATION reports its end. Joining is a part
// of the coordinator; pure, not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "coordinator/command.hpp"
#include "coordinator/joins/join_states.hpp"
#include "model/cluster.hpp"

namespace hocket::coordinator {

// All joins under way. Each call costs O(log joins).
class Joining {
 public:
  // `settings` must outlive this object.
  explicit Joining(const CoordinatorSettings& settings) : settings_(settings) {}

  // Handles START_PROCESSES. Only the commanding member may ask; a refusal is a PROCESSES_READY with its reason.
  void start(const Moment& moment, const model::Member& member, const event::StartProcesses& asked);
  // Handles PROCESS_READY of a started process, which is a member now. The last one triggers PROCESSES_READY.
  void ready(const Moment& moment, const model::Member& member, const event::ProcessReady& said);
  // Handles STOP_PROCESSES of the application: the daemon kills the started processes.
  void stop(const Moment& moment, const model::Member& member, const event::StopProcesses& asked);
  // Handles PROCESS_FAILED of the daemon: a started process has ended or could not be started.
  void failed(const Moment& moment, const event::ProcessFailed& failed);
  // Ends the join because a reconfiguration is over. The started processes have joined, or are no longer wanted.
  void ended(const Moment& moment, const model::Application& application);
  // Handles the departure of a member, before it is removed: the asking member or a started process may be gone.
  void leave(const Moment& moment, const model::Member& member);
  // Abandons the joins whose time limit is over.
  void tick(const Moment& moment);

  // Returns the earliest time limit among the joins that are not complete.
  std::optional<Time> deadline() const;
  // True if the daemon has to report the end of a process that it started for this request (PROCESS_FAILED).
  bool awaits(AppId app, RequestId request) const;

 private:
  // One join: the request, the member that asked, and the members that are ready.
  struct Join {
    RequestId request;
    JoinState state = JoinState::none;
    MemberId asking;
    std::int64_t count = 0;
    std::set<MemberId> ready;
    Time until{};  // starting: the time limit
  };
  using JoinPlace = std::map<AppId, Join>::iterator;

  // Returns the join of that application and request, or the end of `joins_`.
  JoinPlace find(AppId app, RequestId request);
  // Feeds an input into the join's state machine and carries out the action. `why` explains a failure to the asking
  // member. The join may be forgotten afterwards.
  void apply(const Moment& moment, JoinPlace join, JoinInput input, std::string why = {});

  const CoordinatorSettings& settings_;
  std::map<AppId, Join> joins_;
  std::set<std::pair<Time, AppId>> due_;  // time limits of incomplete joins
};

}  // namespace hocket::coordinator
