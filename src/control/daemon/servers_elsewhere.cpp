#include "daemon/servers_elsewhere.hpp"

#include <algorithm>

namespace hocket::daemon {

void ServersElsewhere::follow(const std::string& identity, const event::Server& server) {
  std::erase_if(servers_, [&](const ServerElsewhere& one) {
    return one.said.server == server.server && one.said.pid == server.pid && one.said.instance == server.instance;
  });
  forget_ended();
  servers_.push_back({server, identity});
}

void ServersElsewhere::forget_ended() {
  std::erase_if(servers_, [this](const ServerElsewhere& one) { return !is_awaited_(one.said); });
}

bool ServersElsewhere::kill(const event::HungIoServer& hung, Time now) {
  const auto found = std::ranges::find_if(servers_, [&](const ServerElsewhere& one) {
    return one.said.server == hung.server && one.said.pid == hung.pid && one.said.instance == hung.instance;
  });
  if (found == servers_.end()) return false;
  found->unkilled = hung;
  order_kill(*found, now);
  return true;
}

// An order may be lost with its link, so the server is to be killed until its end is known or it has registered again.
void ServersElsewhere::order_kill(ServerElsewhere& one, Time now) {
  one.kill_at.reset();
  if (!hears_(one.identity) || !order_(one.identity, *one.unkilled)) one.kill_at = now + return_limit;
}

void ServersElsewhere::joined(const std::string& identity, Time now) {
  forget_ended();
  for (ServerElsewhere& one : servers_) {
    if (one.identity != identity || !order_(identity, one.said)) continue;
    if (one.unkilled) one.kill_at = now + return_limit;
  }
}

bool ServersElsewhere::runs_on(const std::string& identity, const event::ServerEnded& ended) const {
  return std::ranges::any_of(servers_, [&](const ServerElsewhere& one) {
    return one.identity == identity && one.said.server == ended.server && one.said.pid == ended.pid &&
           one.said.instance == ended.instance;
  });
}

std::string ServersElsewhere::node_of(const std::string& server, const std::string& instance) const {
  const auto found = std::ranges::find_if(servers_, [&](const ServerElsewhere& one) {
    return one.said.server == server && (instance.empty() || one.said.instance == instance) && is_awaited_(one.said);
  });
  return found == servers_.end() ? std::string{} : found->identity;
}

void ServersElsewhere::tick(Time now) {
  for (ServerElsewhere& one : servers_) {
    if (!one.kill_at || *one.kill_at > now) continue;
    if (may_still_write_(one.said)) {
      order_kill(one, now);
    } else {
      one.kill_at.reset();
      one.unkilled.reset();
    }
  }
}

std::optional<Time> ServersElsewhere::deadline() const {
  std::optional<Time> next;
  for (const ServerElsewhere& one : servers_)
    if (one.kill_at) next = std::min(next.value_or(Time::max()), *one.kill_at);
  return next;
}

}  // namespace hocket::daemon
