// A client is one connection to the node's hocketd, for an application's member or a tool.
//
// It publishes and subscribes as in CLARISSE, section III-B. No exception leaves it, it starts no thread, and no call
// blocks beyond its time limit. Not thread-safe: one thread at a time.
//
// If the connection fails, or the daemon breaks the protocol or does not answer, the client closes the connection for
// good (`connected()` is false). A refused argument or an oversized event leaves it open.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/kept_descriptor.hpp"
#include "base/result.hpp"
#include "bus/local_socket.hpp"
#include "event/event.hpp"
#include "wire/frame.hpp"

namespace hocket::bus {

using OptionalEvent = std::optional<event::Event>;

// The bus client. Destruction closes the connection, which hocketd reports as LOST for a member that has not said BYE.
class Client {
 public:
  using Callback = std::function<void(const event::Event&)>;
  using Subscription = std::int64_t;  // 1, 2, …
  static constexpr Subscription any = 0;

  // Connects to the daemon at `path` (see default_socket()). Fails if no process listens there, or one of a user who is
  // neither this user nor root.
  static Result<Client> connect(const std::string& path, Duration timeout);

  // Sends one event; the kernel has it when this returns. Fails after at most 2 s if the daemon takes nothing in.
  Status send(const event::Body& body);
  // Sends several events at once, in this order.
  Status send(const std::vector<event::Body>& bodies);

  // Returns the next command or answer for this member, or nothing if none came in time. Events of subscriptions that
  // come meanwhile are queued, or passed to their callbacks. At most 10,000 unfetched answers are kept.
  Result<OptionalEvent> receive(Duration timeout);

  // Subscribes to all events that match, from the return of this call on. It waits for the daemon's answer for at most
  // 5 s. With a callback, whichever call on this client receives an event calls it. Without one, events wait in a queue
  // for `next`. The queue of all subscriptions holds 10,000 events; beyond that the oldest is dropped and counted as
  // lost.
  Result<Subscription> subscribe(const std::string& filter, Callback callback = {});
  // Ends a subscription and drops its queued events.
  Status unsubscribe(Subscription subscription);

  // Sends a request, and waits until hocketd has handled it, for at most 5 s. Fails with its text if it refuses.
  Status request(const event::Body& body);
  // Returns what hocketd lists: APPLICATION and IO_SERVER events, and one DAEMON at the end. Waits for at most 5 s.
  Result<std::vector<event::Event>> list();

  // Publishes a user event, of any type name that hocket does not use itself, or SLOW_IO_SERVER with the property
  // `server`: the finding of a monitor (CLARISSE, section IV-A).
  Status publish(const std::string& type, event::Properties properties);

  // Returns the next queued event of the subscription (`any`: of all), or nothing if none came in time.
  Result<OptionalEvent> next(Subscription subscription, Duration timeout);

  // Returns the next event that matches the filter. The first call for a filter subscribes to it, which takes up to 5 s
  // more. Apart from that, `test` does not wait.
  Result<OptionalEvent> wait(const std::string& filter, Duration timeout);
  Result<OptionalEvent> test(const std::string& filter) { return wait(filter, Duration::zero()); }

  // Number of subscribed events that were dropped, because this client did not read or did not fetch them.
  std::int64_t events_lost() const { return events_lost_; }

  bool connected() const { return static_cast<bool>(socket_); }
  // True if the connection has ended because the program closed its descriptor.
  bool taken_away() const { return taken_away_; }
  // Descriptor for poll(): readable when a message may have come; -1 if not connected.
  int fd() const { return socket_.get(); }

 private:
  // An event that waits for `next`.
  struct Queued {
    Subscription subscription;
    event::Event event;
  };

  explicit Client(Fd socket) : socket_(socket.release()) {}

  // Sends what was encoded in `out_`.
  Status send_encoded();
  // Closes the connection and returns the error.
  Error fail(std::string text);
  // Succeeds if there is a connection whose descriptor is still its own. Call it before each use.
  Status usable();
  // Receives and sorts messages until `done()`. Returns false if the time is over first.
  template <class Done>
  Result<bool> pump(Done done, Duration timeout);
  Result<bool> take_in(Time deadline);
  void set_receive_limit(Duration limit);
  // Puts one received message where it belongs: answers, queue or callback.
  Status sort(std::string_view payload);
  // Waits until the daemon has handled everything sent before, and fails if it refused any of that.
  Status synchronise();

  KeptFd socket_;
  bool taken_away_ = false;
  Duration receive_limit_{};  // SO_RCVTIMEO of the socket; 0: none
  wire::Splitter splitter_;
  std::string out_;
  std::deque<event::Event> answers_;
  std::deque<Queued> queue_;
  std::map<Subscription, Callback> subscriptions_;
  std::map<std::string, Subscription, std::less<>> waited_for_;  // subscriptions of `wait`, by filter
  Subscription last_ = 0;
  std::int64_t events_lost_ = 0;
};

}  // namespace hocket::bus
