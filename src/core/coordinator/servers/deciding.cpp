// The servers policy: what it sees, and what is done of what it wants.
#include "coordinator/servers/servers.hpp"

namespace hocket::coordinator {

using policy::ServerChange;

std::vector<policy::ServerStatus> Servers::statuses(Time now) const {
  std::vector<policy::ServerStatus> all;
  all.reserve(entries_.size());
  for (const ServerEntry& entry : entries_) {
    const ServerWork recent = recent_work(entry, now);
    policy::ServerStatus& status = all.emplace_back();
    status.name = entry.said.server;
    status.member = entry.member;
    status.state = name_of(entry.state);
    status.directory = entry.said.directory;
    status.write_behind = entry.said.write_behind;
    status.queue = entry.queue;
    status.held_bytes = entry.held_bytes;
    status.operations_per_s = static_cast<double>(recent.operations) / to_s(load_window);
    status.bytes_per_s = static_cast<double>(recent.bytes) / to_s(load_window);
    status.busy = recent.service;
    status.last_service = entry.last_service;
    status.slow = detector_.finding(entry.member);
  }
  return all;
}

void Servers::decide(const Moment& moment) {
  if (entries_.empty()) return;
  const std::vector<policy::ServerStatus> servers = statuses(moment.now);
  const policy::ServerDecision decision = policy_->decide({cluster_, servers, moment.now}, moment.event);
  for (const ServerChange& change : decision.changes) {
    ServerEntry* entry = find(change.server);
    if (server_step(state_of(entry), slow_input()).action != ServerAction::hold_off) continue;
    hold_off(moment, *entry, change.slow);
    publish(moment);
  }
}

}  // namespace hocket::coordinator
