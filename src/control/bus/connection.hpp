// A connection is one member as the node agent sees it: its socket, its subscriptions, and the messages not sent to it
// yet. The socket of a member of another node is there; a sink takes the bytes for it.
//
// Nothing blocks, and all memory is bounded. Not thread-safe: the agent's thread owns it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bus/local_socket.hpp"
#include "bus/rights.hpp"
#include "event/filter.hpp"
#include "wire/frame.hpp"

namespace hocket::bus {

// Takes bytes for members of other nodes. The owner of the agent provides it.
class MemberSink {
 public:
  MemberSink() = default;
  MemberSink(const MemberSink&) = delete;
  MemberSink& operator=(const MemberSink&) = delete;
  virtual ~MemberSink() = default;
  // Takes some of the bytes, and returns how many. If it has not taken all, it calls Agent::has_room later.
  virtual std::size_t take(MemberId member, std::string_view bytes) = 0;
  // Learns that the agent has dropped the member, and why.
  virtual void dropped(MemberId member, const std::string& reason) = 0;
};

// The sums of what the connections of one user hold. Their owner is whoever counts; the connections count themselves.
struct UserShare {
  std::size_t connections = 0;
  std::size_t subscriptions = 0;
  std::size_t unsent_bytes = 0;
};

// The bounds keep one slow member, or one user with many of them, from delaying others or filling the daemon's memory.
class Connection {
 public:
  // Limit of unsent bytes above which events of subscriptions are dropped. The member receives their number
  // (EVENTS_LOST).
  static constexpr std::size_t event_limit_bytes = 1 << 20;
  // Limit of unsent bytes above which the member itself is dropped, since it has not read its answers for long.
  static constexpr std::size_t answer_limit_bytes = 16 << 20;
  static constexpr std::size_t max_subscriptions = 64;
  // The same for all connections of a user who is not the daemon's. Above the second one, members that have left more
  // than `unread_limit_bytes` are dropped.
  static constexpr std::size_t user_event_limit_bytes = 64 << 20;
  static constexpr std::size_t user_answer_limit_bytes = 256 << 20;
  static constexpr std::size_t unread_limit_bytes = 64 << 10;
  static constexpr std::size_t max_user_subscriptions = 1024;

  // A subscription of the member, by the number that the member chose.
  struct MemberSubscription {
    std::int64_t number;
    event::Filter filter;
  };

  // A member of this node, at the other end of the socket. `share`: of its user; nullptr: that user is not limited.
  Connection(MemberId member, std::string runs_on, const Caller& caller, std::shared_ptr<UserShare> share, Fd socket)
      : node(std::move(runs_on)),
        member_(member),
        caller_(caller),
        share_(std::move(share)),
        socket_(std::move(socket)) {
    if (share_) ++share_->connections;
  }
  // A member of another node.
  Connection(MemberId member, std::string runs_on, const Caller& caller, std::shared_ptr<UserShare> share,
             MemberSink& sink)
      : Connection(member, std::move(runs_on), caller, std::move(share), Fd{}) {
    sink_ = &sink;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  MemberId member() const { return member_; }
  int fd() const { return socket_.get(); }
  bool is_remote() const { return sink_ != nullptr; }
  MemberSink* sink() const { return sink_; }
  // The process that has connected.
  const Caller& caller() const { return caller_; }
  // True if that process runs for this daemon's user, or root: what is_trusted() says, without its system call.
  bool is_of_own_user() const { return share_ == nullptr; }

  // Reads once from the socket. Returns false if the connection has ended.
  bool read();
  // Adds bytes that a member of another node has sent. The caller keeps them until `keep_rest`, which copies what is no
  // complete payload yet. So a member that sends whole messages needs no buffer here.
  void put(std::string_view bytes);
  void keep_rest();
  // Returns the next complete payload that has come (wire::take_payload).
  Result<std::optional<std::string_view>> next_payload() {
    return come_.empty() ? splitter_.next() : wire::take_payload(come_);
  }

  // Queues a command or answer. Returns false if too much is unsent. A message that does not fit into a frame is
  // dropped.
  bool queue(const event::Body& body);
  // Queues the event once for each subscription that it matches, or counts it as lost.
  void queue_if_subscribed(const event::Event& event);
  // Sends as much as the socket takes. Returns false if the socket has failed. If the other end reads no more, the
  // unsent messages are dropped, but the connection stays. Messages that the member sent before it closed can then
  // still be read.
  bool flush();
  bool has_unsent() const { return sent_ < out_.size(); }

  // Adds a subscription, or replaces the one with the same number. Fails for a wrong filter or too many subscriptions,
  // of the member or of its user.
  Status subscribe(std::int64_t number, std::string_view filter);
  void unsubscribe(std::int64_t number);
  bool subscribes() const { return !subscriptions_.empty(); }

  std::string node;                  // on which the member runs
  Duration clock_ahead{};            // of that node's clock, before this one's
  std::string application;           // name from WELCOME; "" before it, and for tools
  std::string stands_for;            // the application in whose name the agent finds it; "": none
  bool is_application = false;       // said HELLO or SERVER, and no BYE since: its loss is reported
  bool holds_nodes = false;          // said HELD_NODES: its loss is reported
  std::int64_t resizes_asked = 0;    // RESIZE messages without an answer so far
  bool wants_writable = false;       // the agent waits until the socket takes more
  bool may_serve = false;            // on another node: it may be an I/O server
  bool is_closed_elsewhere = false;  // by the agent of its node, which has told the operator
  std::string doomed;                // reason for closing it; "" while it stays open

 private:
  std::size_t unsent() const { return out_.size() - sent_; }
  // Gives the unsent bytes to the socket, as far as it takes them. Returns false if the socket has failed.
  bool flush_to_socket();
  bool flush_to_sink();
  // Tells the user's share what is unsent now.
  void count_unsent();
  bool has_room_for_events() const;
  // True if so much is unsent that nobody seems to read it.
  bool is_unread() const;
  // Removes the sent part, if that is everything, or large.
  void forget_sent();
  // Queues EVENTS_LOST once half of the events' room is free again.
  void report_lost();

  MemberId member_;
  Caller caller_;
  std::shared_ptr<UserShare> share_;
  std::size_t counted_bytes_ = 0;  // of the unsent ones, in the share
  Fd socket_;
  MemberSink* sink_ = nullptr;  // of another node
  wire::Splitter splitter_;
  std::string_view come_;  // bytes between `put` and `keep_rest`; empty if the splitter has them
  std::string out_;
  std::size_t sent_ = 0;  // bytes of out_ already sent
  std::vector<MemberSubscription> subscriptions_;
  std::int64_t events_lost_ = 0;
  bool deaf_ = false;  // the other end no longer reads
};

}  // namespace hocket::bus
