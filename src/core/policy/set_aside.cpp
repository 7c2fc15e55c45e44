// Slow servers are set aside: elastic collective I/O (CLARISSE, section IV-A). A server whose report makes it slower
// than its peers leaves the map for a hold-off. The last server that is up stays.
#include <algorithm>

#include "policy/server_policy.hpp"

namespace hocket::policy {
namespace {

bool is_up(const ServerStatus& server) { return server.state == "up"; }

// Only the server that reports is looked at: an earlier report of another one was looked at when it came.
ServerDecision decide(const ServersView& view, const event::Event& event) {
  ServerDecision decision;
  if (!std::holds_alternative<event::ServerLoad>(event.body)) return decision;
  const auto reporter = std::ranges::find(view.servers, event.origin.member, &ServerStatus::member);
  if (reporter == view.servers.end() || !reporter->slow || !is_up(*reporter)) return decision;
  if (std::ranges::count_if(view.servers, is_up) < 2) return decision;
  decision.changes.push_back({ServerChange::Action::set_aside, std::string{reporter->name}, reporter->slow});
  return decision;
}

}  // namespace

const ServerPolicy set_aside{
    "set-aside", "a server that is slower than its peers leaves the server map for a while (elastic collective I/O)",
    decide};

}  // namespace hocket::policy
