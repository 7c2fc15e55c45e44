// One member as the node agent sees it: its socket, what it subscribed to, and what waits to be sent to it.
//
// Nothing blocks and nothing is kept without bound. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "bus/local_socket.hpp"
#include "event/filter.hpp"
#include "wire/frame.hpp"

namespace hocket::bus {

class Connection {
 public:
  // Beyond this much unsent, events of subscriptions are left out; the member is told how many.
  static constexpr std::size_t event_limit_bytes = 1 << 20;
  // Beyond this much unsent, answers have not been read for so long that the member is dropped.
  static constexpr std::size_t answer_limit_bytes = 16 << 20;
  static constexpr std::size_t max_subscriptions = 64;

  struct Subscription {
    std::int64_t number;
    event::Filter filter;
  };

  Connection(MemberId member, Fd socket) : member_(member), socket_(std::move(socket)) {}

  MemberId member() const { return member_; }
  int fd() const { return socket_.get(); }

  // Takes in what the socket has, once. False: it has ended.
  bool read();
  Result<std::optional<std::string_view>> next_payload() { return splitter_.next(); }

  // Queue a command or answer. False: too much is unsent.
  bool queue(const event::Body& body);
  // Queue the event once for each subscription that it matches.
  void queue_if_subscribed(const event::Event& event);
  // Sends what the socket takes. False: it has failed. Where nobody is left to read, what was to be sent is dropped:
  // what the member said before it went is still there to be read, and then the end.
  bool flush();
  bool has_unsent() const { return sent_ < out_.size(); }

  Status subscribe(std::int64_t number, std::string_view filter);
  void unsubscribe(std::int64_t number);
  bool subscribes() const { return !subscriptions_.empty(); }

  std::string application;         // as WELCOME called it; "" before, and for tools
  bool is_application = false;     // said HELLO, and has not said BYE since
  std::int64_t resizes_asked = 0;  // and not answered yet
  bool wants_writable = false;     // the agent waits for room in the socket
  std::string doomed;              // why it is to be closed; "" while it is not

 private:
  std::size_t unsent() const { return out_.size() - sent_; }
  void report_lost();

  MemberId member_;
  Fd socket_;
  wire::Splitter splitter_;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  std::vector<Subscription> subscriptions_;
  std::int64_t events_lost_ = 0;
  bool deaf_ = false;  // the other end reads no more
};

}  // namespace hocket::bus
