// Resizes of malleable applications (CLARISSE+FlexMPI, Algorithm 2; Proteo, section 4.2): who may be asked for what,
// and what became of it.
//
//   RESIZE (tool) → RECONFIGURE (commanding member) … RECONFIGURATION (application) → the same to the tool
//                 → REFUSED
//   WITHDRAW_RESIZE (tool, or it is lost) → WITHDRAW_RESIZE (commanding member) → RECONFIGURATION as above, not done
//                                                                               → WITHDRAW_RESIZE begun, to the tool
//
// One resize of an application is under way at a time, until it is told of or the application has gone; how long that
// takes is the application's matter. A part of the coordinator; pure and not thread-safe as it is. RESIZE walks through
// all applications; other events cost the same however many there are.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "coordinator/command.hpp"
#include "model/cluster.hpp"

namespace hocket::coordinator {

class Resizing {
 public:
  // Both must outlive it.
  Resizing(const Settings& settings, model::Cluster& cluster) : settings_(settings), cluster_(cluster) {}

  void malleable(const model::Member& member, const event::Malleable& said);
  void resize(const Moment& moment, const event::Resize& asked);
  // The tool takes back what it asked for. False: nothing of its is under way.
  bool withdraw(const Moment& moment);
  // The application has begun with what is to be taken back.
  void begun(const Moment& moment, const model::Member& member, const event::WithdrawResize& said);
  void ended(const Moment& moment, const model::Member& member, const event::Reconfiguration& record);
  // The member is about to go, in order or not.
  void leave(const Moment& moment, const model::Member& member, bool in_order);

 private:
  struct UnderWay {
    RequestId request;
    MemberId asked_by;
  };

  // How many processes it is to have, or why that cannot be.
  Result<std::int64_t> processes_after(const model::Application& application, const event::Resize& asked) const;
  Status check_cores(const model::Application& application, std::int64_t processes) const;
  Error no_such_application(const std::string& name) const;
  void give_up(const Moment& moment, model::Application& application, const std::string& why);

  const Settings& settings_;
  model::Cluster& cluster_;
  std::map<AppId, UnderWay> under_way_;
  std::uint64_t requests_made_ = 0;
};

}  // namespace hocket::coordinator
