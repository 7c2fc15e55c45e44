// Helpers for the tests of this folder: they build events and print commands.
#pragma once

#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/command.hpp"
#include "event/properties.hpp"
#include "event/server_map.hpp"

namespace hocket::coordinator::testing {

inline event::Event event_of(std::int64_t milliseconds, std::uint64_t member, event::Body body) {
  return {Time{} + std::chrono::milliseconds{milliseconds}, {"node1", "", MemberId{member}}, std::move(body)};
}

// Prints the fields of a command that the tests compare.
struct Words {
  std::ostream& out;
  void operator()(const event::Welcome& e) { out << " app " << e.app.value << " " << e.application << " " << e.policy; }
  void operator()(const event::QueuedIo& e) {
    out << " " << e.request.value << " position " << e.position << " behind " << e.behind;
  }
  void operator()(const event::GrantIo& e) {
    out << " " << e.request.value << " waited " << e.waited.count() / 1'000'000;
    if (e.share != 1) out << " share " << std::fixed << std::setprecision(2) << e.share;
    if (e.delegated) out << " delegated";
  }
  void operator()(const event::PauseIo& e) { out << " " << e.request.value << " because of " << e.because_of; }
  void operator()(const event::RecallIo& e) {
    out << " " << e.request.value;
    if (!e.because_of.empty()) out << " because of " << e.because_of;
  }
  void operator()(const event::LeaseExpired& e) {
    out << " " << e.request.value << " " << e.application << " " << e.target;
  }
  void operator()(const event::Reconfigure& e) {
    out << " " << e.request.value << " to " << e.processes << " at " << e.at_iteration;
    if (!e.places.empty()) out << " on " << e.places;
    if (!e.methods.empty()) out << " by " << e.methods;
    if (!e.leave.empty()) out << " leaving " << e.leave;
  }
  void operator()(const event::WithdrawResize& e) { out << " " << e.request.value << (e.begun ? " begun" : ""); }
  void operator()(const event::Reconfiguration& e) {
    out << " " << e.request.value << (e.done ? " done " : " not done ") << e.sources << " to " << e.targets << e.reason;
  }
  void operator()(const event::StartProcesses& e) {
    out << " " << e.request.value << " count " << e.count << " port " << e.port << " pid " << e.pid << " app "
        << e.app.value;
  }
  void operator()(const event::StopProcesses& e) { out << " " << e.request.value << " app " << e.app.value; }
  void operator()(const event::ProcessesReady& e) {
    out << " " << e.request.value << (e.failed.empty() ? "" : " failed: ") << e.failed;
  }
  void operator()(const event::Decision& e) {
    out << " " << e.number << " " << e.policy << " " << e.action << " " << e.decided_for << " " << e.from << " to "
        << e.to;
    if (e.return_at_iteration != 0) out << " back at " << e.return_at_iteration;
  }
  void operator()(const event::Outcome& e) {
    out << " " << e.decision << " " << e.quantity << " " << std::fixed << std::setprecision(2) << e.predicted_s << " "
        << e.actual_s << (e.met ? " met" : " off");
  }
  void operator()(const event::Model& e) { out << " " << e.application << " " << e.model; }
  void operator()(const event::NewServerMap& e) {
    out << " " << e.epoch;
    const auto map = event::parse_server_map(e.epoch, e.text);
    if (!map) out << " broken: " << map.error().text;
    for (std::size_t i = 0; map && i < map.value().servers.size(); ++i) {
      const event::ServerMap::MappedServer& server = map.value().servers[i];
      if (server.set_aside) continue;
      out << " " << server.name;
      if (server.weight != event::full_weight) out << "*" << server.weight;
    }
    if (e.tuning.any())
      out << " tuned: " << e.tuning.aggregators << " " << e.tuning.buffer_bytes << " " << e.tuning.method;
    if (e.write_through) out << ", write through";
    if (e.direct) out << ", direct";
  }
  void operator()(const event::MoveDataSets& e) {
    out << " " << e.epoch << " to";
    const auto map = event::parse_server_map(e.epoch, e.text);
    if (!map) out << " broken: " << map.error().text;
    for (std::size_t i = 0; map && i < map.value().servers.size(); ++i)
      out << " " << map.value().servers[i].name << (map.value().servers[i].set_aside ? " slow" : "");
    out << " from " << e.drained;
  }
  void operator()(const event::UseScheduler& e) {
    out << " " << e.scheduler;
    if (e.data_servers != 0) out << " " << e.data_servers << " data servers of " << e.stripe_bytes;
    if (!e.scheduler_by.empty()) out << " by " << e.scheduler_by;
  }
  void operator()(const event::ApplicationFor& e) {
    out << " of " << e.pids << ": " << e.pid << " " << e.application << " " << e.processes;
    if (e.weight != 1) out << " weight " << e.weight;
  }
  void operator()(const event::ApplicationWeight& e) { out << " " << e.application << " " << e.weight; }
  void operator()(const event::SlowIoServer& e) {
    out << " " << e.server << " for " << e.hold_off.count() / 1'000'000;
    if (e.reports > 0) out << ", " << e.service.count() / 1000 << " to " << e.peers.count() / 1000;
  }
  void operator()(const event::HungIoServer& e) {
    out << " " << e.server << " pid " << e.pid << " silent " << e.silent.count() / 1'000'000;
  }
  void operator()(const event::CoresFor& e) { out << (e.wait ? " wait " : " start ") << e.missing << " " << e.job; }
  void operator()(const event::ChangeAllocation& e) {
    out << " " << e.allocation;
    if (!e.release.empty()) out << " release " << e.release;
    if (e.cores != 0) out << " more " << e.cores;
  }
  void operator()(const event::Profile& e) { out << " app " << e.app.value << ": " << e.processes; }
  void operator()(const event::Refused& e) { out << " " << e.text; }
  template <class Other>
  void operator()(const Other&) {
    out << " ?";
  }
};

// Returns a command as one line, with durations in milliseconds.
inline std::string describe(const Command& command) {
  std::ostringstream out;
  out << command.to.value << " " << event::type_name(command.body);
  std::visit(Words{out}, command.body);
  return out.str();
}

inline std::vector<std::string> describe_all(const std::vector<Command>& commands) {
  std::vector<std::string> lines;
  for (const Command& command : commands) lines.push_back(describe(command));
  return lines;
}

}  // namespace hocket::coordinator::testing
