// Drives the real coordinator as the daemon does. Events go in with their time and origin, and commands come out. An
// optional trace records both. It has the daemon's format, and `hocketd --replay` reproduces it.
//
// Not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "trace/writer.hpp"

namespace hocket::sim {

class SimulatedApplication;

// The simulation's view of a coordinator. Subclasses replace its decisions: clairvoyant.hpp and tests.
class Controller {
 public:
  explicit Controller(const coordinator::CoordinatorSettings& settings) : coordinator_(settings) {}
  virtual ~Controller() = default;

  // Passes the simulated applications, which outlive the controller. Called once, before everything else. The
  // coordinator itself does not look at them.
  virtual void watch(std::span<const SimulatedApplication>) {}

  // Begins a trace. Returns an error if the file cannot be written.
  Status open_trace(const std::string& path, const trace::TraceHeader& header);
  // Returns why the trace ends early, or "" if it is complete.
  const std::string& trace_error() const { return trace_error_; }

  // The origin or addressee of an event. The simulation sets `application` when the member receives WELCOME.
  struct MemberIdentity {
    MemberId id;
    std::string node;
    std::string application;
  };

  // Handles one event and returns the commands, which are valid until the next call. `from` is the origin; the
  // daemon's own events have none.
  virtual const std::vector<coordinator::Command>& send(Time now, const MemberIdentity& from, event::Body body);
  // Writes the last event and its commands to the trace. Call it after the commands are obeyed, when names are known.
  // `addressee` returns the MemberIdentity of an id.
  template <class Addressee>
  void record(const std::vector<coordinator::Command>& commands, Addressee addressee) {
    if (!trace_) return;
    trace_->add(trace::Direction::in, event_);
    for (const coordinator::Command& command : commands) {
      const MemberIdentity& to = addressee(command.to);
      trace_->add(trace::Direction::out, {event_.time, {to.node, to.application, command.to}, command.body});
    }
    if (*trace_->due() <= event_.time) trace_->flush();
  }

  std::optional<Time> deadline() const { return coordinator_.deadline(); }
  const coordinator::Coordinator& coordinator() const { return coordinator_; }

 private:
  coordinator::Coordinator coordinator_;
  std::optional<trace::Writer> trace_;
  std::string trace_error_;
  event::Event event_;  // reused, to save allocations
};

}  // namespace hocket::sim
