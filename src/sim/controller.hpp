// The real coordinator as the daemon drives it: events in, with their time and origin, commands out, both into a trace
// where one is wanted. The trace is the daemon's, and `hocketd --replay` agrees with it.
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

class Application;

class Controller {
 public:
  explicit Controller(const coordinator::Settings& settings) : coordinator_(settings) {}
  virtual ~Controller() = default;  // a test may say other commands

  // Called once, before all else: the simulated applications, which outlive it. The coordinator does not look at them.
  virtual void watch(std::span<const Application>) {}

  // Fails where the file cannot be written.
  Status open_trace(const std::string& path, const trace::Header& header);
  // Why the trace ends early; "" where it is whole.
  const std::string& trace_error() const { return trace_error_; }

  // Who the members are: `node` and, once it is welcome, the name of the application.
  struct Member {
    MemberId id;
    std::string node;
    std::string application;
  };

  // Valid until the next call. `from` is the origin: none for the daemon's own events.
  virtual const std::vector<coordinator::Command>& send(Time now, const Member& from, event::Body body);
  // After the commands were looked at: into the trace. `addressee` gives the Member for an id.
  template <class Addressee>
  void record(const std::vector<coordinator::Command>& commands, Addressee addressee) {
    if (!trace_) return;
    trace_->add(trace::Direction::in, event_);
    for (const coordinator::Command& command : commands) {
      const Member& to = addressee(command.to);
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
  event::Event event_;  // used again, for its memory
};

}  // namespace hocket::sim
