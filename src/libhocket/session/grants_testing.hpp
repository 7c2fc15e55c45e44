// Test support: a coordinator, and connections to it on which messages are late or lost.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "base/batches.hpp"
#include "coordinator/coordinator.hpp"

namespace hocket::runtime::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }
  Duration some(Duration most) {
    return std::chrono::microseconds{1 + pick(static_cast<std::uint64_t>(most.count()) / 1000)};
  }

 private:
  std::mt19937_64 random_;
};

// A message under way. Without a body, it is the end of the connection.
struct Sent {
  Time at;
  std::optional<event::Body> body;
};

// True if such a message for that request is under way.
template <class E>
bool has(const std::deque<Sent>& sent, std::uint64_t request) {
  return std::any_of(sent.begin(), sent.end(), [&](const Sent& one) {
    const E* found = one.body ? std::get_if<E>(&*one.body) : nullptr;
    return found != nullptr && found->request.value == request;
  });
}

struct Connection {
  MemberId member;
  std::size_t client = 0;
  std::deque<Sent> up;    // to the coordinator
  std::deque<Sent> down;  // to the client
  bool cut = false;       // messages sent from now on are lost
  std::uint64_t last_request = 0;
};

// The coordinator with all connections. Messages of one direction of a connection arrive in the order in which they
// were sent.
class Network {
 public:
  // `calm`: no message is late.
  Network(const coordinator::CoordinatorSettings& settings, bool calm, Random& random)
      : coordinator_(settings), calm_(calm), random_(random) {}

  const model::Cluster& cluster() const { return coordinator_.cluster(); }
  std::optional<Time> deadline() const { return coordinator_.deadline(); }
  std::deque<Connection>& connections() { return connections_; }
  Time now() const { return now_; }
  void advance(Time now) { now_ = std::max(now_, now); }

  Connection& connect(std::size_t client, const std::string& job) {
    Connection& connection = connections_.emplace_back();
    connection.member = MemberId{connections_.size()};
    connection.client = client;
    event::Hello hello;
    hello.job = hello.application = job;
    hello.program = "/bin/a";
    hello.mpi = "mpich";
    hello.processes = 1;
    hello.delegations = true;
    send(connection, hello);
    return connection;
  }

  void send(Connection& connection, event::Body body) {
    if (!connection.cut) connection.up.push_back({arrival(connection.up), std::move(body)});
  }

  // Ends a connection. Of the messages under way, the first ones still arrive on both sides.
  void cut(Connection& connection) {
    const auto keep = [this](std::deque<Sent>& sent) {
      sent.erase(sent.begin() + static_cast<std::ptrdiff_t>(random_.pick(sent.size() + 1)), sent.end());
    };
    keep(connection.up);
    keep(connection.down);
    close(connection);
  }
  // Ends a connection without a loss.
  void close(Connection& connection) {
    connection.cut = true;
    connection.up.push_back({arrival(connection.up), event::Lost{"it has gone"}});
    connection.down.push_back({arrival(connection.down), std::nullopt});
  }

  // The first message of the connection reaches the coordinator.
  void arrive(Connection& connection) {
    const Sent sent = std::move(connection.up.front());
    connection.up.pop_front();
    handle(connection.member, *sent.body);
  }
  void tick() { handle({}, event::Tick{}); }

  // Returns the first message of the connection to the client; nothing: the connection has ended.
  static std::optional<event::Body> take(Connection& connection) {
    std::optional<event::Body> body = std::move(connection.down.front().body);
    connection.down.pop_front();
    return body;
  }

  // Returns how often the request was granted. A GRANT_IO that only changes the bandwidth share does not count.
  int grants(MemberId member, RequestId request) const {
    const auto found = grants_.find({member, request});
    return found == grants_.end() ? 0 : found->second;
  }
  // True if FINISH_IO of the request has arrived, and the coordinator may have kept it until batches of other members
  // have come.
  bool may_keep_finish(MemberId member, RequestId request) const {
    const auto found = finished_.find({member, request});
    return found != finished_.end() && now_ <= found->second + all_known_after;
  }
  int grants() const {
    int all = 0;
    for (const auto& [request, count] : grants_) all += count;
    return all;
  }

 private:
  Time arrival(const std::deque<Sent>& sent) {
    Duration delay = random_.some(std::chrono::milliseconds{20});
    if (!calm_ && random_.one_in(30)) delay = random_.some(std::chrono::seconds{4});
    return std::max(now_ + delay, sent.empty() ? now_ : sent.back().at);
  }

  void handle(MemberId from, const event::Body& body) {
    if (const auto* paused = std::get_if<event::PausedIo>(&body)) granted_.erase({from, paused->request});
    if (const auto* finish = std::get_if<event::FinishIo>(&body)) {
      granted_.erase({from, finish->request});
      finished_[{from, finish->request}] = now_;
    }
    for (const coordinator::Command& command : coordinator_.handle({now_, {"node1", "", from}, body})) {
      if (!command.to) continue;
      if (const auto* expired = std::get_if<event::LeaseExpired>(&command.body))
        granted_.erase({command.to, expired->request});
      if (const auto* grant = std::get_if<event::GrantIo>(&command.body))
        grants_[{command.to, grant->request}] += granted_.insert({command.to, grant->request}).second ? 1 : 0;
      Connection& connection = connections_.at(command.to.value - 1);
      if (!connection.cut) connection.down.push_back({arrival(connection.down), command.body});
    }
  }

  coordinator::Coordinator coordinator_;
  const bool calm_;
  Random& random_;
  std::deque<Connection> connections_;  // by the number of the member, from 1
  std::set<std::pair<MemberId, RequestId>> granted_;
  std::map<std::pair<MemberId, RequestId>, int> grants_;
  std::map<std::pair<MemberId, RequestId>, Time> finished_;
  Time now_ = Time{} + std::chrono::seconds{1};
};

}  // namespace hocket::runtime::testing
