#include "daemon/metrics_endpoint.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/clock.hpp"

namespace hocket::daemon {
namespace {

constexpr std::array loop_bounds_s{0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0};

// Adds what the coordinator knows now.
void describe_state(const coordinator::Coordinator& coordinator, Time now, metrics::Facts& facts) {
  facts.policy = policy::text_of(coordinator.policies());
  // A target that was counted has its gauges, too, though nobody uses it now.
  for (const auto& [target, counted] : facts.counted.targets) facts.requests[target];
  for (const auto& [id, application] : coordinator.cluster().applications()) {
    ++facts.applications;
    facts.members += static_cast<std::int64_t>(application.members.size());
    for (const model::Member* member : application.members) {
      for (const auto& request : member->requests) {
        metrics::TargetRequests& target = facts.requests[request->target->name];
        ++(request->state == model::RequestState::granted ? target.granted : target.waiting);
      }
    }
  }
  for (const event::IoServer& server : coordinator.servers().describe(now)) {
    const auto state = std::ranges::find(facts.servers, server.state, &metrics::ServersInState::state);
    if (state != facts.servers.end()) ++state->servers;
  }
}

}  // namespace

void LongestLately::add(Duration value, Time now) {
  if (now - begun_ >= window) {
    previous_ = now - begun_ >= 2 * window ? Duration{} : present_;
    present_ = {};
    begun_ = now;
  }
  present_ = std::max(present_, value);
}

Duration LongestLately::longest(Time now) const {
  if (now - begun_ >= 2 * window) return {};
  return now - begun_ >= window ? present_ : std::max(previous_, present_);
}

MetricsEndpoint::MetricsEndpoint(const coordinator::Coordinator& coordinator, DescribeLeader describe)
    : coordinator_(coordinator),
      describe_(std::move(describe)),
      started_s_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()),
      loop_(loop_bounds_s) {}

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::start(const std::string& address,
                                                                const coordinator::Coordinator& coordinator,
                                                                DescribeLeader describe) {
  const auto parsed = metrics::parse_address(address);
  if (!parsed) return parsed.error();
  std::unique_ptr<MetricsEndpoint> endpoint{new MetricsEndpoint{coordinator, std::move(describe)}};
  auto server = metrics::HttpServer::listen(parsed.value(), [self = endpoint.get()] { return self->page(); });
  if (!server) return server.error();
  endpoint->server_ = std::move(server).value();
  spdlog::info("/metrics is served at {}", endpoint->server_->address());
  if (!parsed.value().is_local()) {
    spdlog::warn("anyone who reaches {} can read /metrics, the names of targets included: there is no password",
                 endpoint->server_->address());
  }
  return endpoint;
}

void MetricsEndpoint::count(const event::Event& event, const std::vector<coordinator::Command>& commands) {
  counters_.count(event);
  for (const coordinator::Command& command : commands) counters_.count_command(command.to, command.body);
}

void MetricsEndpoint::count_pass(Time woke) {
  const Time now = node_now();
  loop_.add(now - woke);
  longest_pass_.add(now - woke, now);
}

std::string MetricsEndpoint::page() const {
  const Time now = node_now();
  metrics::Facts facts;
  facts.counted = counters_.counts();
  facts.version = HOCKET_VERSION;
  facts.started_s = started_s_;
  facts.loop = loop_;
  facts.loop_longest = longest_pass_.longest(now);
  describe_state(coordinator_, now, facts);
  describe_(facts);
  return metrics::exposition(facts);
}

}  // namespace hocket::daemon
