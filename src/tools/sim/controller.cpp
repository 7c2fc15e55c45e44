#include "sim/controller.hpp"

#include <utility>

namespace hocket::sim {

Status Controller::open_trace(const std::string& path, const trace::TraceHeader& header) {
  auto writer = trace::Writer::create(path, header, [this](const std::string& text) { trace_error_ = text; });
  if (!writer) return writer.error();
  trace_.emplace(std::move(writer).value());
  return success();
}

const std::vector<coordinator::Command>& Controller::send(Time now, const MemberIdentity& from, event::Body body) {
  event_.time = now;
  event_.origin.member = from.id;
  // The coordinator reads the node from these two only. Copying the names costs more than its decisions.
  const bool introduces = std::holds_alternative<event::Hello>(body) || std::holds_alternative<event::Server>(body);
  if (trace_ || introduces) {
    event_.origin.node = from.node;
    event_.origin.application = from.application;
  }
  event_.body = std::move(body);
  return coordinator_.handle(event_);
}

}  // namespace hocket::sim
