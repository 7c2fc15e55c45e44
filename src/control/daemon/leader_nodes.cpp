// The leader's work for other nodes: I/O servers, processes and programs there.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "daemon/for_servers.hpp"
#include "daemon/leader.hpp"

namespace hocket::daemon {
namespace {

// A server that was asked for and has not joined keeps its name so long.
constexpr Duration starting_limit = std::chrono::minutes{1};

}  // namespace

void Leader::take_joined_node(const link::Introduction& node) {
  elsewhere_.joined(node.identity, node_now());
  // Other nodes cannot know the secret of servers here if there is no key.
  if (!settings_.address.empty() || node_agents_->has_no_key() || left_address_ == node_agents_->own_host()) return;
  left_address_ = node_agents_->own_host();
  const std::string directory = socket_.substr(0, socket_.rfind('/'));
  if (const Status left = leave_address(directory, left_address_); !left)
    spdlog::warn("I/O servers that start here are not reached by other nodes: {}", left.error().text);
}

void Leader::take_report(const link::Introduction& node, event::Body&& body) {
  if (const auto* ended = std::get_if<event::ServerEnded>(&body)) {
    if (elsewhere_.runs_on(node.identity, *ended)) tell_ended_server(*ended);
  } else if (std::holds_alternative<event::ServerStarted>(body) || std::holds_alternative<event::ServerFailed>(body)) {
    publish_of(node.node, std::move(body));
  } else if (auto* process = std::get_if<event::ProcessFailed>(&body)) {
    failed_processes_.push_back(std::move(*process));
  } else if (const auto* told = std::get_if<event::ProgramFingerprint>(&body)) {
    take_fingerprint(*told);
  }
}

void Leader::publish_of(const std::string& node, event::Body body) {
  if (auto* started = std::get_if<event::ServerStarted>(&body)) started->node = node;
  if (auto* failed = std::get_if<event::ServerFailed>(&body)) {
    failed->node = node;
    starting_.erase(failed->server);
    spdlog::warn("the I/O server {} did not start on {}: {}", failed->server, node, failed->reason);
  }
  record({node_now(), {node, {}, {}}, std::move(body)}, {});
  agent_->flush();
}

// ---- I/O servers ---------------------------------------------------------------------------------------------------

void Leader::start_server(const event::Event& asked) {
  auto start = std::get<event::StartServer>(asked.body);
  if (const std::string wrong = start_server_on(std::move(start)); !wrong.empty()) {
    agent_->send(asked.origin.member, event::Refused{wrong});
    agent_->flush();
  }
}

std::string Leader::start_server_on(event::StartServer asked) {
  if (settings_.users == "all")
    return "this daemon is for all users and starts no I/O servers: use one of your own, by HOCKET_DIR";
  if (asked.server.empty()) asked.server = free_server_name();
  const bool is_here = asked.node.empty() || asked.node == node_ || asked.node == "localhost";
  const std::string identity = is_here || !node_agents_ ? std::string{} : node_agents_->identity_of(asked.node);
  if (!is_here && identity.empty()) {
    const std::string nodes = node_agents_ ? node_agents_->nodes() : std::string{};
    return fmt::format("no agent of this user's daemons has joined from node '{}'; these nodes are there: {}",
                       asked.node.substr(0, 64), nodes.empty() ? node_ : node_ + " " + nodes);
  }
  if (!is_here && node_agents_->has_no_key())
    return "I/O servers of other nodes need the cluster's key, by which they know clients: this one has MUNGE instead";
  starting_[asked.server] = {identity, node_now()};
  if (!is_here) {
    node_agents_->order(identity, asked);
    return {};
  }
  const Status begun = started_servers_.start(asked);
  if (!begun) publish_of(node_, event::ServerFailed{asked.server, node_, begun.error().text, asked.token});
  return {};
}

void Leader::take_started_servers() {
  for (event::Body& told : started_servers_.collect()) publish_of(node_, std::move(told));
}

std::string Leader::free_server_name() {
  std::erase_if(starting_, [now = node_now()](const auto& one) { return now - one.second.second > starting_limit; });
  const auto known = coordinator_.servers().describe(node_now());
  for (int number = 1;; ++number) {
    std::string name = fmt::format("s{}", number);
    const auto is_it = [&](const event::IoServer& one) {
      const bool is_lost =
          one.state == "lost" && !coordinator_.servers().may_still_write(one.server, one.pid, one.instance);
      return one.server == name && !is_lost;
    };
    if (!starting_.contains(name) && std::ranges::none_of(known, is_it)) return name;
  }
}

void Leader::stop_server(const event::Event& asked) {
  const auto& stop = std::get<event::StopServer>(asked.body);
  std::string node = elsewhere_.node_of(stop.server, stop.instance);
  if (const auto starting = starting_.find(stop.server); node.empty() && starting != starting_.end())
    node = starting->second.first;
  std::string wrong;
  if (!node.empty()) {
    if (!node_agents_->order(node, stop))
      wrong = fmt::format("'{}' cannot be stopped: no agent of its node has joined; end it there", stop.server);
  } else if (!started_servers_.stop(stop.server)) {
    const Status ended = servers_.end(stop.server, stop.instance);
    if (!ended) wrong = fmt::format("'{}' cannot be stopped: {}", stop.server.substr(0, 64), ended.error().text);
  }
  if (wrong.empty()) return;
  agent_->send(asked.origin.member, event::Refused{wrong});
  agent_->flush();
}

// ---- processes and programs ----------------------------------------------------------------------------------------

std::string Leader::start_processes(const event::StartProcesses& start) {
  const auto* const application = coordinator_.cluster().find(start.app);
  const MemberId asks = application == nullptr ? MemberId{} : application->malleability.commanding;
  if (!asks || !agent_->is_foreign(asks)) {
    const Status started = starter_.start(start);
    return started ? std::string{} : started.error().text;
  }
  if (node_agents_ && node_agents_->order_about(asks, start)) return {};
  return "hocketd on " + node_ + " starts processes only for its own user's applications";
}

void Leader::take_fingerprint(const event::ProgramFingerprint& told) {
  const auto* const application = coordinator_.cluster().find(told.app);
  if (application == nullptr || told.sha256.empty()) return;
  fingerprints_[told.app] = told.sha256;
  if (application->curve.empty()) profiles_.find(told.program, told.app, told.sha256);
}

}  // namespace hocket::daemon
