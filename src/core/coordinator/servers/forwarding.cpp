// Forwarded calls: by which scheduler the servers order them, and to which application a client belongs.
#include <charconv>

#include "coordinator/servers/servers.hpp"
#include "explain/words.hpp"

namespace hocket::coordinator {

using explain::quoted;

// The servers know the schedulers, so they check the name.
void Servers::schedule_by_hand(const Moment& moment, const event::SetServer& set) {
  const bool is_all = set.server == all_servers;
  const ServerEntry* const one = is_all ? nullptr : find(set.server);
  if (!is_all && (one == nullptr || !one->member || one->state == ServerState::hung)) {
    return refuse(moment, "no server called " + quoted(set.server.substr(0, longest_name)) +
                              " runs; 'hocket servers' lists them");
  }
  if (set.scheduler.empty() || set.scheduler.size() > longest_name) {
    return refuse(
        moment, "SET_SERVER: " + quoted(set.scheduler.substr(0, longest_name)) + " is no name of a request scheduler");
  }
  for (const ServerEntry& entry : entries_) {
    const bool is_meant = is_all ? static_cast<bool>(entry.member) && entry.state != ServerState::hung : &entry == one;
    if (!is_meant) continue;
    moment.commands.push_back({entry.member, event::UseScheduler{set.scheduler, set.data_servers, set.stripe_bytes}});
  }
}

void Servers::scheduler_used(const Moment& moment, const event::SchedulerUsed& used) {
  ServerEntry* const entry = find(moment.event.origin.member);
  if (entry == nullptr || !used.error.empty()) return;
  entry->said.scheduler = used.scheduler.substr(0, longest_name);
  event::SchedulerChanged change{entry->said.scheduler, used.previous.substr(0, longest_name), used.forward_queue};
  tell(moment, entry->said.server, "schedule", {}, std::move(change), {});
}

void Servers::vouch(const Moment& moment, const event::AskApplication& asked) {
  if (find(moment.event.origin.member) == nullptr) return;
  event::ApplicationFor answer;
  answer.pids = asked.pids;
  const char* at = asked.pids.data();
  const char* const end = at + asked.pids.size();
  while (answer.pid == 0 && at < end) {
    std::int64_t pid = 0;
    const auto [after, error] = std::from_chars(at, end, pid);
    if (error != std::errc{}) break;
    at = after + (after < end ? 1 : 0);
    for (const auto& [id, application] : cluster_.applications()) {
      if (application.peer_pid != pid || pid <= 0 || application.node != moment.event.origin.node) continue;
      answer.pid = pid;
      answer.application = application.name;
      answer.processes = application.processes;
      break;
    }
  }
  moment.commands.push_back({moment.event.origin.member, std::move(answer)});
}

}  // namespace hocket::coordinator
