// The node agent accepts the members of a node on a Unix socket. It passes their events to the leader, stamped with
// time and origin. In the other direction it carries the leader's commands to members, and events to subscribers.
//
// The agent decides nothing and waits for no member. Its sockets do not block, and it skips or drops a member that does
// not read. The leader is a callback, on whatever node it runs. One thread runs the agent; not thread-safe. Nothing
// throws.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "bus/connection.hpp"

namespace hocket::bus {

// The connections of a node's members. Each member is trusted no further than its socket: the agent stamps its origin.
class Agent {
 public:
  // Receives each event of a member: HELLO, …, BYE, SET_POLICY, RESIZE, LIST, USER, and LOST for a lost member. Called
  // from `run`.
  using EventHandler = std::function<void(event::Event&&)>;
  // The reason in LOST if the member itself has closed its connection, or has ended.
  static constexpr std::string_view closed_by_member = "connection closed";
  // Receives one line for the operator if a member was refused or dropped.
  using Warn = std::function<void(const std::string&)>;

  // Listens at `socket`. An existing file there is replaced, so the caller must hold the directory's lock. The
  // destructor removes the socket's file.
  static Result<std::unique_ptr<Agent>> listen(std::string socket, std::string node, EventHandler leader, Warn warn);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Waits for an event, at most for `timeout` (nothing: without limit), and handles it. Returns false if none came. It
  // also returns true, without a wait, if a member was lost meanwhile, because the leader's deadline may have changed.
  bool run(std::optional<Duration> timeout);
  // Calls `ready` from `run` whenever `fd` is readable. The caller keeps the descriptor, and must keep it open.
  void watch(int fd, std::function<void()> ready);

  // Queues a command or answer for the member. Does nothing if the member has left.
  void send(MemberId to, const event::Body& body);
  // Sends the queued messages as far as the sockets take them; `run` sends the rest.
  void flush();
  // Queues the event for all subscribers that it matches. Costs nothing without subscribers.
  void publish(const event::Event& event);
  bool has_subscribers() const { return !subscribers_.empty(); }

  // Returns the origin of an event about this member.
  event::Origin origin_of(MemberId member) const;
  // Number of connections, tools included.
  std::size_t members() const { return connections_.size(); }
  // True if the socket's path still leads to this agent. An operator may have removed the file or its directory.
  bool is_reachable() const;

 private:
  Agent(std::string socket, std::string node, EventHandler leader, Warn warn)
      : path_(std::move(socket)), node_(std::move(node)), leader_(std::move(leader)), warn_(std::move(warn)) {}

  Status open();
  Status add_to_epoll(int fd, std::uint64_t key);
  void accept_members();
  // Stops and resumes accepting members, when the process has no free descriptor.
  void pause_accepting(int error);
  void listen_again();
  // Reads from a member and handles the complete messages.
  void take_in(Connection& connection);
  void handle(Connection& connection, event::Event event);
  void on_subscribe(Connection& connection, const event::Subscribe& subscribe);
  void update_subscribers(Connection& connection);
  // Asks epoll for EPOLLOUT exactly while the member has unsent messages.
  void wait_for_room(Connection& connection);
  // `doom` marks a connection to be closed; `bury` closes the marked ones and reports LOST. `bury` returns true if
  // there were any.
  void doom(Connection& connection, std::string reason);
  bool bury();
  Connection* find(std::uint64_t member);

  std::string path_;
  std::string node_;
  EventHandler leader_;
  Warn warn_;
  Fd listener_;
  Fd epoll_;
  std::pair<dev_t, ino_t> socket_file_{};  // identity of our socket file, to recognise a replaced one
  std::optional<Time> accept_again_;       // no descriptor is free: time of the next attempt
  bool said_full_ = false;                 // the operator was warned of that already
  std::uint64_t last_member_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<std::function<void()>> watched_;
  std::vector<Connection*> subscribers_;
  std::vector<std::uint64_t> unflushed_;
  std::vector<std::uint64_t> doomed_;
};

}  // namespace hocket::bus
