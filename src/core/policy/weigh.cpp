// Loaded servers get a smaller share of the stripes of files, by measured service time (CLARISSE, section III-C). Each
// server of a directory gets a weight in proportion to the bytes that it moves in a second of service, so that all of
// them are through with their stripes at about the same time. No server is left without stripes, so each report also
// shows if a server has recovered.
#include <algorithm>
#include <cmath>
#include <vector>

#include "policy/server_policy.hpp"

namespace hocket::policy {
namespace {

// Operations of a server in the last second from which on they say something of its speed.
constexpr double least_operations = 8;
// Servers whose operations differ more in size are not compared.
constexpr double most_size_ratio = 4;
// Differences in the time of an operation that no weight follows, as for a slow server (model/slow_servers.hpp).
constexpr double least_difference_s = 100e-6;
// A weight follows a speed that asks for another one by this factor and a whole step. Each change costs applications an
// adoption.
constexpr double hysteresis = 1.5;

// What the reports of the last second show of a server.
struct MeasuredService {
  const ServerStatus* server;
  double bytes_per_operation;
  double s_per_operation;
  double speed;  // bytes in a second of service
};

std::vector<MeasuredService> measured_beside(const ServersView& view, std::string_view directory) {
  std::vector<MeasuredService> all;
  for (const ServerStatus& one : view.servers) {
    const double busy_s = to_s(one.busy);
    const bool counts = one.state == "up" && one.directory == directory && one.operations_per_s >= least_operations;
    if (!counts || busy_s <= 0 || one.bytes_per_s <= 0) continue;
    all.push_back(
        {&one, one.bytes_per_s / one.operations_per_s, busy_s / one.operations_per_s, one.bytes_per_s / busy_s});
  }
  return all;
}

bool are_comparable(const std::vector<MeasuredService>& all) {
  if (all.size() < 2) return false;
  const auto [small, large] = std::ranges::minmax(all, {}, &MeasuredService::bytes_per_operation);
  return large.bytes_per_operation <= most_size_ratio * small.bytes_per_operation;
}

// Returns the weight that the server should have beside the quickest one, before it is rounded.
double share_of(const MeasuredService& one, const MeasuredService& quickest) {
  if (one.s_per_operation - quickest.s_per_operation < least_difference_s) return event::full_weight;
  return std::max(event::full_weight * std::min(one.speed / quickest.speed, 1.0), 1.0);
}

ServerDecision decide(const ServersView& view, const event::Event& event) {
  ServerDecision decision;
  if (!std::holds_alternative<event::ServerLoad>(event.body)) return decision;
  const auto reporter = std::ranges::find(view.servers, event.origin.member, &ServerStatus::member);
  if (reporter == view.servers.end()) return decision;
  const std::vector<MeasuredService> all = measured_beside(view, reporter->directory);
  if (!are_comparable(all)) return decision;
  const MeasuredService quickest = std::ranges::max(all, {}, &MeasuredService::speed);
  const auto is_off = [&](const MeasuredService& one) {
    const double share = share_of(one, quickest), weight = one.server->weight;
    return std::abs(share - weight) >= 1 && std::max(share / weight, weight / share) >= hysteresis;
  };
  if (std::ranges::none_of(all, is_off)) return decision;
  for (const MeasuredService& one : all) {
    ServerChange change;
    change.action = ServerChange::Action::weigh;
    change.server = one.server->name;
    change.weight = std::lround(share_of(one, quickest));
    if (change.weight != one.server->weight) decision.changes.push_back(std::move(change));
  }
  return decision;
}

}  // namespace

const ServerPolicy weigh{"weigh", "a loaded server gets a smaller share of the stripes, by measured service time",
                         decide};

}  // namespace hocket::policy
