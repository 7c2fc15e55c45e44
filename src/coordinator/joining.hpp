// Processes that are started outside of their application's MPI and join it (strategy "join"): how many are ready, and
// until when they are waited for.
//
//   START_PROCESSES (commanding member) → START_PROCESSES (the daemon) … PROCESS_READY (each) → PROCESSES_READY
//                        PROCESS_FAILED, too late, STOP_PROCESSES → STOP_PROCESSES (the daemon), PROCESSES_READY failed
//                        PROCESS_FAILED when all are ready → PROCESSES_READY failed
//
// One join of an application is under way at a time, until a RECONFIGURATION tells how it ended. A part of the
// coordinator; pure and not thread-safe as it is.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "coordinator/command.hpp"
#include "model/cluster.hpp"

namespace hocket::coordinator {

class Joining {
 public:
  // Must outlive it.
  explicit Joining(const Settings& settings) : settings_(settings) {}

  void start(const Moment& moment, const model::Member& member, const event::StartProcesses& asked);
  void ready(const Moment& moment, const model::Member& member, const event::ProcessReady& said);
  void stop(const Moment& moment, const model::Member& member, const event::StopProcesses& asked);
  // One that was started has ended, or could not be started. Of the daemon, not of a member.
  void failed(const Moment& moment, const event::ProcessFailed& failed);
  // A reconfiguration of the application is over: what was started has joined, or is not wanted any more.
  void ended(const Moment& moment, const model::Application& application);
  // The member is about to go.
  void leave(const Moment& moment, const model::Member& member);
  void tick(const Moment& moment);

  std::optional<Time> deadline() const;
  // Whether the end of a process that was started for this request is worth telling.
  bool awaits(AppId app, RequestId request) const;

 private:
  struct Join {
    RequestId request;
    MemberId asking;
    std::int64_t count = 0;
    std::set<MemberId> ready;
    Time until{};
    bool failed = false;  // that was told; it is kept where all were ready
    bool all_ready() const { return static_cast<std::int64_t>(ready.size()) >= count; }
  };
  using Place = std::map<AppId, Join>::iterator;

  // The join of that application and request, or the end.
  Place find(AppId app, RequestId request);
  void give_up(const Moment& moment, Place join, std::string why);
  void forget(Place join);

  const Settings& settings_;
  std::map<AppId, Join> joins_;
  std::set<std::pair<Time, AppId>> due_;  // those of which not all are ready
};

}  // namespace hocket::coordinator
