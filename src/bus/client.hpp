// One connection to the node's hocketd: an application's member, or a tool.
//
// Publish and subscribe as in CLARISSE, section III-B. No exception leaves it, it starts no thread, and nothing blocks
// beyond the time it is given. Local to the calling process; not thread-safe: one thread at a time.
//
// After an error of a call that sends or receives, the connection is closed and stays so (`connected()` is false).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "bus/local_socket.hpp"
#include "event/event.hpp"
#include "wire/frame.hpp"

namespace hocket::bus {

using OptionalEvent = std::optional<event::Event>;

class Client {
 public:
  using Callback = std::function<void(const event::Event&)>;
  using Subscription = std::int64_t;  // 1, 2, …
  static constexpr Subscription any = 0;

  // `path`: see default_socket(). Fails where nobody listens there, or somebody who is neither this user nor root.
  static Result<Client> connect(const std::string& path, Duration timeout);

  // The frame is handed to the kernel when it returns. Fails after at most 2 s where the daemon takes nothing in.
  Status send(const event::Body& body);

  // The next event that was sent to this member itself (commands, answers); nothing where none came in time. Events of
  // subscriptions that come meanwhile are queued, and their callbacks called.
  Result<OptionalEvent> receive(Duration timeout);

  // Every event that matches, from when it returns (the daemon's answer is waited for, at most 5 s). With a callback,
  // it is called by whichever call on this client takes the event in; without, the event waits in a queue for `next`.
  // Of what nobody fetches, the oldest is dropped beyond 10,000 events.
  Result<Subscription> subscribe(const std::string& filter, Callback callback = {});
  Status unsubscribe(Subscription subscription);

  // An event of one's own: any type name that hocket does not use itself.
  Status publish(const std::string& type, event::Properties properties);

  // The next queued event of the subscription (`any`: of whichever); nothing where none came in time.
  Result<OptionalEvent> next(Subscription subscription, Duration timeout);

  // The next event that matches the filter. The first call for a filter subscribes to it. `test` does not wait.
  Result<OptionalEvent> wait(const std::string& filter, Duration timeout);
  Result<OptionalEvent> test(const std::string& filter) { return wait(filter, Duration::zero()); }

  // Events of subscriptions that were left out because this client did not read, or its queue was not fetched.
  std::int64_t events_lost() const { return events_lost_; }

  bool connected() const { return static_cast<bool>(socket_); }
  // For poll(): readable when something may have come. -1 where not connected.
  int fd() const { return socket_.get(); }

 private:
  struct Queued {
    Subscription subscription;
    event::Event event;
  };

  explicit Client(Fd socket) : socket_(std::move(socket)) {}

  Error fail(std::string text);
  // Takes in what comes until `done()`; false: the time is over.
  template <class Done>
  Result<bool> pump(Done done, Duration timeout);
  Result<bool> take_in(Time deadline);
  void set_receive_limit(Duration limit);
  Status sort(std::string_view payload);
  Status synchronise();

  Fd socket_;
  Duration receive_limit_{};  // of the socket; 0: none
  wire::Splitter splitter_;
  std::string out_;
  std::deque<event::Event> answers_;
  std::deque<Queued> queue_;
  std::map<Subscription, Callback> subscriptions_;
  std::map<std::string, Subscription, std::less<>> waited_for_;  // by filter
  Subscription last_ = 0;
  std::int64_t events_lost_ = 0;
};

}  // namespace hocket::bus
