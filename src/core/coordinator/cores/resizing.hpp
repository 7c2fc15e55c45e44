// Resizes of malleable applications (CLARISSE+FlexMPI, Algorithm 2; Proteo, section 4.2). Resizing checks what may be
// asked of an application, sends the request, and reports how it ended.
//
//  RESIZE (tool) → RECONFIGURE (commanding member) … RECONFIGURATION (application) → the same to the tool
//                → REFUSED
//  WITHDRAW_RESIZE (tool, or it is lost) → WITHDRAW_RESIZE (commanding member) → RECONFIGURATION as above, not done
//                                                                              → WITHDRAW_RESIZE begun, to the tool
//
// resize_states.hpp is the table of these courses.
//
// At most one resize of an application is under way at a time, until it is reported or the application has left. The
// application determines how long that takes. If its I/O phases show that it has long passed the iteration without an
// answer, the coordinator notifies the tool (REFUSED).
//
// Resizing is a part of the coordinator; pure, not thread-safe. A check of the free cores walks through all
// applications, and a withdrawal through all resizes under way. Other calls cost the same however many applications
// run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "coordinator/command.hpp"
#include "coordinator/cores/resize_states.hpp"
#include "model/cluster.hpp"
#include "model/cores.hpp"

namespace hocket::coordinator {

// Upper bound on an I/O period in computations of time limits, so that every wait ends.
constexpr Duration longest_period = std::chrono::hours{24};

// The request for a size that was sent to an application, or why none was sent.
struct SizeRequest {
  RequestId id{};            // none: nothing was sent
  event::Reason obstacle{};  // why
  explicit operator bool() const { return static_cast<bool>(id); }
};

// What a policy's resize says about nodes.
struct NodeWishes {
  std::string places;             // of new processes, as RECONFIGURE carries them; "": anywhere
  std::vector<NodeCount> before;  // the application's nodes before it grew, for one that returns; empty: not known
};

// The resizes under way, at most one for each application.
class Resizing {
 public:
  // All arguments must outlive this object.
  Resizing(const CoordinatorSettings& settings, model::Cluster& cluster, const model::Cores& cores)
      : settings_(settings), cluster_(cluster), cores_(cores) {}

  // This leader gives out no cores from now on: applications may shrink, but none grows.
  void only_grant() { gives_out_ = false; }
  bool gives_out() const { return gives_out_; }

  // Handles MALLEABLE: the member becomes the commanding one, and the application's size and method are those it
  // states.
  void malleable(const model::Member& member, const event::Malleable& said);
  // Returns the application that a RESIZE of this member or tool is about; nullptr: there is none.
  model::Application* subject_of(MemberId asking, const event::Resize& asked);
  // Answers a RESIZE that is not done: a tool with REFUSED, an application with RECONFIGURATION.
  void refuse_to(const Moment& moment, MemberId asking, const std::string& why);
  // Handles RESIZE of a tool, or of an application for itself, which counts as a tool's. Returns the application that
  // was asked, or nullptr if the request was refused. The request replaces what a policy asked of the application
  // before.
  model::Application* resize(const Moment& moment, const event::Resize& asked);
  // Sends a policy's resize, which replaces the policy's previous one; its end is reported to no tool. Fails if a
  // tool's resize is under way, which has precedence, or if no member can be asked. The caller must check the cores
  // first: `cores_exceeded`.
  SizeRequest ask(const Moment& moment, model::Application& application, std::int64_t processes,
                  std::int64_t at_iteration, const NodeWishes& nodes);
  // Returns the numbers if the processes of all applications together would exceed `cores`.
  std::optional<event::CoresExceeded> cores_exceeded(const model::Application& application,
                                                     std::int64_t processes) const;
  // Ends a policy's resize without an answer, since the application has shown the size that it has.
  void take_as_answered(model::Application& application, std::int64_t processes);
  // Handles WITHDRAW_RESIZE of a tool, or its loss. Returns false if none of its resizes is under way.
  bool withdraw(const Moment& moment);
  // Handles WITHDRAW_RESIZE {begun}: the application has already begun the resize. The tool is notified.
  void begun(const Moment& moment, const model::Member& member, const event::WithdrawResize& said);
  // Handles RECONFIGURATION: updates the application's size and resize costs, and answers the tool.
  void ended(const Moment& moment, const model::Member& member, const event::Reconfiguration& record);
  // Returns the most processes that resizes may give all applications together.
  std::int64_t cores() const { return cores_.is_told() ? cores_.total() : settings_.cores; }
  // Returns the time limit of a resize for an application that reaches its control points.
  Duration patience(const model::Application& application) const;
  // Returns true if the answer to a tool's resize can no longer come, as the I/O phase shows. The tool has been
  // notified then.
  bool answer_is_lost(const Moment& moment, model::Application& application, const event::IoPhase& phase);
  // Handles the departure of a member, before it is removed. `in_order`: it said BYE.
  void leave(const Moment& moment, const model::Member& member, bool in_order);

 private:
  // A resize that was asked for and is not reported yet.
  struct PendingResize {
    RequestId request;
    ResizeState state = ResizeState::none;
    MemberId asked_by;  // the tool, or a member of the application
    std::int64_t at_iteration = 0;
    std::int64_t reached = 0;  // from `due` on: iteration of the first I/O phase at or after `at_iteration`
    Time answer_by{};          // overdue: the time limit
  };

  ResizeState state_of(AppId app) const;
  // True if a tool asked for the application's resize under way.
  bool is_for_tool(AppId app) const { return is_of_tool(state_of(app)); }
  // Feeds an input into the application's resize, and forgets the resize if that ends it. Returns the action, which the
  // caller carries out.
  ResizeAction apply(model::Application& application, ResizeInput input);
  // Sends RECONFIGURE and records the resize as under way. Sets the command's request and time, and the nodes to be
  // left if it names none. `before`: as in NodeWishes.
  RequestId send(const Moment& moment, model::Application& application, MemberId asked_by, event::Reconfigure command,
                 const std::vector<NodeCount>& before);

  // Returns the number of processes that the application is to have, or the reason for a refusal.
  Result<std::int64_t> processes_after(const model::Application& application, const event::Resize& asked) const;
  // Returns the error for an unknown application; it suggests the nearest name.
  Error no_such_application(const std::string& name) const;
  // Ends the resize under way, if any, by `input`, and answers the tool with REFUSED and the reason.
  void give_up(const Moment& moment, model::Application& application, ResizeInput input, const std::string& why);

  const CoordinatorSettings& settings_;
  bool gives_out_ = true;
  model::Cluster& cluster_;
  const model::Cores& cores_;
  std::map<AppId, PendingResize> under_way_;
  std::uint64_t requests_made_ = 0;
};

}  // namespace hocket::coordinator
