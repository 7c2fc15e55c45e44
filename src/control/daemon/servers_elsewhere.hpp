// The I/O servers of other nodes, as the leader's daemon looks after them: their agents watch and kill them. A node may
// be cut off, and its servers live on there. When its agent comes back, it is asked again what has become of them.
//
// Pure but for the orders, which a callback sends. Not thread-safe; nothing throws.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

class ServersElsewhere {
 public:
  // A server that has come back with its node has so long to register again, before it is killed.
  static constexpr Duration return_limit = std::chrono::seconds{10};

  // Asks the agent of a node for something; returns false if the node has none now.
  using Order = std::function<bool(const std::string& identity, const event::Body&)>;
  // Says of a node if its agent was heard lately. An order that waits in a link that is dying would kill a server after
  // it has come back.
  using Hears = std::function<bool(const std::string& identity)>;
  // Says of a server if it may still write, or may be waited for (Servers::may_still_write, awaits_end).
  using IsSo = std::function<bool(const event::Server&)>;

  ServersElsewhere(Order order, Hears hears, IsSo may_still_write, IsSo is_awaited)
      : order_(std::move(order)),
        hears_(std::move(hears)),
        may_still_write_(std::move(may_still_write)),
        is_awaited_(std::move(is_awaited)) {}

  // Notes a server that has joined, on the node with this identity.
  void follow(const std::string& identity, const event::Server& server);
  // Has the server killed. Returns false if it is none of these. A node that is silent is asked later, and one that was
  // cut off when it has come back, as long as the server may still write.
  bool kill(const event::HungIoServer& hung, Time now);
  // The agent of a node has come back: it is to watch again.
  void joined(const std::string& identity, Time now);
  // True if the server that has ended runs on this node: no agent speaks for another node.
  bool runs_on(const std::string& identity, const event::ServerEnded& ended) const;
  // Returns the identity of the node of a server; "" if it is none of these. "" for `instance`: any run.
  std::string node_of(const std::string& server, const std::string& instance) const;

  // Kills those that have not returned in time.
  void tick(Time now);
  std::optional<Time> deadline() const;

 private:
  struct ServerElsewhere {
    event::Server said;
    std::string identity;
    std::optional<event::HungIoServer> unkilled{};  // it is to be killed, and its end is not known
    std::optional<Time> kill_at{};                  // when its node is asked (again)
  };

  void forget_ended();
  void order_kill(ServerElsewhere& one, Time now);

  Order order_;
  Hears hears_;
  IsSo may_still_write_, is_awaited_;
  std::vector<ServerElsewhere> servers_;
};

}  // namespace hocket::daemon
