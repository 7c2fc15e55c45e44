// Resizes of malleable applications (CLARISSE+FlexMPI, Algorithm 2; Proteo, section 4.2): who may be asked for what,
// and what became of it.
//
//   RESIZE (tool) → RECONFIGURE (commanding member) … RECONFIGURATION (application) → the same to the tool
//                 → REFUSED
//   WITHDRAW_RESIZE (tool, or it is lost) → WITHDRAW_RESIZE (commanding member) → RECONFIGURATION as above, not done
//                                                                               → WITHDRAW_RESIZE begun, to the tool
//
// One resize of an application is under way at a time, until it is told of or the application has gone; how long that
// takes is the application's matter. Where its I/O phases show that it has long gone past the iteration without a word,
// the tool is told so. A part of the coordinator; pure and not thread-safe as it is. RESIZE walks through
// all applications; other events cost the same however many there are.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "coordinator/command.hpp"
#include "model/cluster.hpp"

namespace hocket::coordinator {

// Longer I/O periods are taken for this where something is waited for: nothing is waited for without end.
constexpr Duration longest_period = std::chrono::hours{24};

class Resizing {
 public:
  // All must outlive it.
  Resizing(const Settings& settings, model::Cluster& cluster, const model::Cores& cores)
      : settings_(settings), cluster_(cluster), cores_(cores) {}

  void malleable(const model::Member& member, const event::Malleable& said);
  // The application that is asked; nullptr: refused. What a policy asked of it before is not wanted any more.
  model::Application* resize(const Moment& moment, const event::Resize& asked);
  // As a RESIZE of a policy: nobody is told how it ends, and it takes the place of what a policy asked for before. A
  // tool's resize goes first. Whether there are cores for it is the caller's to know: `check_cores`.
  Result<RequestId> ask(const Moment& moment, model::Application& application, std::int64_t processes,
                        std::int64_t at_iteration, const std::string& places);
  // Whether the processes of all would not become more than the `cores` of the settings.
  Status check_cores(const model::Application& application, std::int64_t processes) const;
  // What a policy asked for was not answered, but the application shows that it has that size.
  void take_as_answered(model::Application& application, std::int64_t processes);
  // The tool takes back what it asked for. False: nothing of its is under way.
  bool withdraw(const Moment& moment);
  // The application has begun with what is to be taken back.
  void begun(const Moment& moment, const model::Member& member, const event::WithdrawResize& said);
  void ended(const Moment& moment, const model::Member& member, const event::Reconfiguration& record);
  // How long an application that comes to its control points may take for a resize.
  Duration patience(const model::Application& application) const;
  // After an I/O phase: whether the answer to a tool's resize can come no more. The tool has been told.
  bool answer_is_lost(const Moment& moment, model::Application& application, const event::IoPhase& phase);
  // The member is about to go, in order or not.
  void leave(const Moment& moment, const model::Member& member, bool in_order);

 private:
  struct UnderWay {
    RequestId request;
    MemberId asked_by;  // none: a policy
    std::int64_t at_iteration = 0;
    std::int64_t past = -1;  // iterations, `at_iteration` or more, that were done when a phase first told; -1: none has
    Time answer_by{};        // when a later phase showed that more are done: it has begun; 0: none has
  };

  bool is_for_tool(AppId app) const;
  RequestId send(const Moment& moment, model::Application& application, MemberId asked_by, std::int64_t processes,
                 std::int64_t at_iteration, const std::string& places);

  // How many processes it is to have, or why that cannot be.
  Result<std::int64_t> processes_after(const model::Application& application, const event::Resize& asked) const;
  Error no_such_application(const std::string& name) const;
  void give_up(const Moment& moment, model::Application& application, const std::string& why);

  const Settings& settings_;
  model::Cluster& cluster_;
  const model::Cores& cores_;
  std::map<AppId, UnderWay> under_way_;
  std::uint64_t requests_made_ = 0;
};

}  // namespace hocket::coordinator
