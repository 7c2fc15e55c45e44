// The node agent accepts the members of a node on a Unix socket. It passes their events to the leader, stamped with
// time and origin. In the other direction it carries the leader's commands to members, and events to subscribers.
// Members of other nodes come through `open`: their agents carry what they say to this one.
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
#include "bus/repeats.hpp"
#include "bus/rights.hpp"

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

  // Listens at `socket`, for these users. An existing file there is replaced, so the caller must hold the directory's
  // lock. The destructor removes the socket's file.
  static Result<std::unique_ptr<Agent>> listen(std::string socket, std::string node, EventHandler leader, Warn warn,
                                               Users users = {});
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Waits for an event, at most for `timeout` (nothing: without limit), and handles it. Returns false if none came. It
  // also returns true, without a wait, if a member was lost meanwhile, because the leader's deadline may have changed.
  bool run(std::optional<Duration> timeout);
  // Calls `ready` from `run` whenever `fd` is readable. The caller keeps the descriptor, and must keep it open.
  void watch(int fd, std::function<void()> ready);
  // Returns the time at which `run` last ended its wait: its pass began then.
  Time woke() const { return woke_; }

  // Adds a member of another node, and returns its number; the error says why it is refused. `sink` must
  // stay until the member is closed or dropped. `may_serve`: its agent looks after processes there for this daemon, so
  // the member may be an I/O server.
  Result<MemberId> open(const std::string& node, const Caller& caller, MemberSink& sink, bool may_serve = false);
  // Handles bytes that the member has sent. `clock_ahead`: what its node's clock shows more than this one's. Times in
  // the events become times of this clock.
  void take_in(MemberId member, std::string_view bytes, Duration clock_ahead);
  // Closes the member's connection. `reason` is that of LOST.
  void close(MemberId member, std::string reason);
  // The sink of the member takes bytes again.
  void has_room(MemberId member);
  // True if the member runs on another node, or for another user than this daemon's and root: its files and processes
  // are not this daemon's to touch.
  bool is_foreign(MemberId member) const;

  // True if the member may learn of this decision or finding.
  bool may_hear(MemberId member, const event::Body& body) const;
  // Queues a command or answer for the member. Does nothing if the member has left.
  void send(MemberId to, const event::Body& body);
  // Sends the queued messages as far as the sockets take them; `run` sends the rest.
  void flush();
  // Queues the event for all subscribers that it matches. Costs nothing without subscribers.
  void publish(const event::Event& event);
  bool has_subscribers() const { return !subscribers_.empty(); }

  // Returns the origin of an event about this member.
  event::Origin origin_of(MemberId member) const;
  // Returns the name of the member's application, or of the last one; "" for a tool. It is valid until the next `run`
  // or `send`.
  std::string_view application_of(MemberId member) const;
  // Number of connections, tools included.
  std::size_t members() const { return connections_.size(); }
  // True if the socket's path still leads to this agent. An operator may have removed the file or its directory.
  bool is_reachable() const;

 private:
  Agent(std::string socket, std::string node, EventHandler leader, Warn warn, Users users)
      : path_(std::move(socket)),
        node_(std::move(node)),
        leader_(std::move(leader)),
        warn_(std::move(warn)),
        users_(users) {}

  Status open();
  void accept_members();
  // Fails, and warns, if the user has too many connections.
  Status has_room_for(const Caller& caller);
  // Writes a line that a user has caused, unless that user causes many.
  void warn_of(const Caller& caller, const std::string& line);
  // Returns why the member may not send this event; "" if it may.
  std::string what_is_wrong(const event::Body& body, const Connection& connection) const;
  // True if the user of the connection may steer the application.
  bool owns(const Connection& connection, std::string_view application) const;
  bool may_see(const Connection& connection, const event::Event& event) const;
  // Takes note of the application for which a member stands now.
  void note_application(Connection& connection);
  // Returns the share of a user; nullptr if that user is not limited.
  std::shared_ptr<UserShare> share_of(uid_t user);
  // Stops and resumes accepting members, when the process has no free descriptor.
  void pause_accepting(int error);
  void listen_again();
  // Reads from a member and handles the complete messages.
  void take_in(Connection& connection);
  void handle_messages(Connection& connection);
  void handle(Connection& connection, event::Event& event);
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
  Users users_;
  Repeats repeats_;
  Fd listener_;
  Fd epoll_;
  std::pair<dev_t, ino_t> socket_file_{};  // identity of our socket file, to recognise a replaced one
  std::optional<Time> accept_again_;       // no descriptor is free: time of the next attempt
  bool said_full_ = false;                 // the operator was warned of that already
  Time woke_{};
  std::uint64_t last_member_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::unordered_map<uid_t, std::shared_ptr<UserShare>> shares_;  // of users who are limited
  // Whose an application is: all its members are of one user.
  struct Owner {
    uid_t user = 0;
    std::size_t members = 0;
  };
  std::unordered_map<std::string, Owner> owners_;  // by the application's name
  std::vector<std::function<void()>> watched_;
  std::vector<Connection*> subscribers_;
  std::vector<Connection*> unflushed_;  // perhaps more than once
  std::vector<std::uint64_t> doomed_;
};

}  // namespace hocket::bus
