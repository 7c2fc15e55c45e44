// The node agent: members connect to it over a Unix socket, it tells the leader what they say, stamped with who they
// are, and carries the leader's commands and everybody's events back.
//
// It decides nothing and waits for nobody: sockets do not block, a member that does not read is skipped or dropped. The
// leader is a callback, on whatever node it is. One thread runs it all; not thread-safe. Nothing throws.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "bus/connection.hpp"

namespace hocket::bus {

class Agent {
 public:
  // What is to be done with an event of a member: HELLO, …, BYE, SET_POLICY, RESIZE, LIST, USER, and LOST. Called from
  // `run`.
  using Leader = std::function<void(event::Event&&)>;
  // One line for the operator: a member was refused or dropped.
  using Warn = std::function<void(const std::string&)>;

  // Listens at `socket`; what is there is replaced, so the caller holds the directory's lock. The socket's file is
  // removed with the agent.
  static Result<std::unique_ptr<Agent>> listen(std::string socket, std::string node, Leader leader, Warn warn);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Waits until something happens, `timeout` at most (nothing: without end), and handles it. False: nothing did. True
  // is also given, without a wait, where a member has gone meanwhile: what the leader waits for may have changed.
  bool run(std::optional<Duration> timeout);
  // `ready` is called from `run` when `fd` is readable. The descriptor stays the caller's.
  void watch(int fd, std::function<void()> ready);

  // Queues a command or answer for the member; nothing happens where it has gone.
  void send(MemberId to, const event::Body& body);
  // Sends what is queued, as far as the sockets take it; the rest follows from `run`.
  void flush();
  // Queues the event for whoever subscribed to it. Costs nothing where nobody has.
  void publish(const event::Event& event);
  bool has_subscribers() const { return !subscribers_.empty(); }

  // The origin of an event that has to do with this member.
  event::Origin origin_of(MemberId member) const;
  // Connected now, tools included.
  std::size_t members() const { return connections_.size(); }
  // Whether the socket's path still leads here: somebody may have removed it, or its directory.
  bool is_reachable() const;

 private:
  Agent(std::string socket, std::string node, Leader leader, Warn warn)
      : path_(std::move(socket)), node_(std::move(node)), leader_(std::move(leader)), warn_(std::move(warn)) {}

  Status open();
  Status add_to_epoll(int fd, std::uint64_t key);
  void accept_members();
  void pause_accepting(int error);
  void listen_again();
  void take_in(Connection& connection);
  void handle(Connection& connection, event::Event event);
  void on_subscribe(Connection& connection, const event::Subscribe& subscribe);
  void update_subscribers(Connection& connection);
  void wait_for_room(Connection& connection);
  void doom(Connection& connection, std::string reason);
  bool bury();
  Connection* find(std::uint64_t member);

  std::string path_;
  std::string node_;
  Leader leader_;
  Warn warn_;
  Fd listener_;
  Fd epoll_;
  std::pair<dev_t, ino_t> socket_file_{};  // what is at `path_` is ours if it is this
  std::optional<Time> accept_again_;       // where no descriptor is left: when the next attempt is due
  bool said_full_ = false;                 // the operator was told so, and nothing has got better since
  std::uint64_t last_member_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<std::function<void()>> watched_;
  std::vector<Connection*> subscribers_;
  std::vector<std::uint64_t> unflushed_;
  std::vector<std::uint64_t> doomed_;
};

}  // namespace hocket::bus
