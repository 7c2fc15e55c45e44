// A connection is one member as the node agent sees it: its socket, its subscriptions, and the messages not sent to it
// yet.
//
// Nothing blocks, and all memory is bounded. Not thread-safe: the agent's thread owns it.
#pragma once

#include <string>
#include <vector>

#include "bus/local_socket.hpp"
#include "event/filter.hpp"
#include "wire/frame.hpp"

namespace hocket::bus {

// The bounds keep one slow member from delaying others or filling the daemon's memory.
class Connection {
 public:
  // Limit of unsent bytes above which events of subscriptions are dropped. The member receives their number
  // (EVENTS_LOST).
  static constexpr std::size_t event_limit_bytes = 1 << 20;
  // Limit of unsent bytes above which the member itself is dropped, since it has not read its answers for long.
  static constexpr std::size_t answer_limit_bytes = 16 << 20;
  static constexpr std::size_t max_subscriptions = 64;

  // A subscription of the member, by the number that the member chose.
  struct MemberSubscription {
    std::int64_t number;
    event::Filter filter;
  };

  Connection(MemberId member, Fd socket) : member_(member), socket_(std::move(socket)) {}

  MemberId member() const { return member_; }
  int fd() const { return socket_.get(); }

  // Reads once from the socket. Returns false if the connection has ended.
  bool read();
  // Returns the next complete payload that was read (wire::Splitter::next).
  Result<std::optional<std::string_view>> next_payload() { return splitter_.next(); }

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

  // Adds a subscription, or replaces the one with the same number. Fails for a wrong filter or too many subscriptions.
  Status subscribe(std::int64_t number, std::string_view filter);
  void unsubscribe(std::int64_t number);
  bool subscribes() const { return !subscriptions_.empty(); }

  std::string application;         // name from WELCOME; "" before it, and for tools
  bool is_application = false;     // said HELLO or SERVER, and no BYE since: its loss is reported
  std::int64_t resizes_asked = 0;  // RESIZE messages without an answer so far
  bool wants_writable = false;     // the agent waits until the socket takes more
  std::string doomed;              // reason for closing it; "" while it stays open

 private:
  std::size_t unsent() const { return out_.size() - sent_; }
  // Queues EVENTS_LOST once half of the events' room is free again.
  void report_lost();

  MemberId member_;
  Fd socket_;
  wire::Splitter splitter_;
  std::string out_;
  std::size_t sent_ = 0;  // bytes of out_ already sent
  std::vector<MemberSubscription> subscriptions_;
  std::int64_t events_lost_ = 0;
  bool deaf_ = false;  // the other end no longer reads
};

}  // namespace hocket::bus
