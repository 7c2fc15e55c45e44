// Asks hocketd for turns before the server stores what nobody waits for (docs/design/io-servers.md). A thread of its
// own does that, because hocketd may be slow to answer. It joins each application whose writes the server holds, by a
// connection for each application and target, and follows the course of turn_course.hpp.
//
// The loop is never blocked: if hocketd is missing, silent, or lets the server wait for too long, the turn becomes one
// that may store.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bus/client.hpp"
#include "bus/local_socket.hpp"
#include "server/turn_course.hpp"
#include "server/write_back_turn.hpp"

namespace hocket::server {

class TurnTaker {
 public:
  using LogSink = std::function<void(std::string_view)>;  // receives one line, in the thread

  // Turns come from the hocketd at `socket`.
  TurnTaker(std::string socket, TurnLimits limits, LogSink say);
  ~TurnTaker() { leave(); }  // see `leave`
  TurnTaker(const TurnTaker&) = delete;
  TurnTaker& operator=(const TurnTaker&) = delete;

  // Returns the turn of an application at a target, which all openings for it share. The thread, which the first call
  // starts, leaves the application when no opening has the turn any more.
  WriteBackTurnPtr turn_of(const event::Applicant& whose);
  // Returns a descriptor that is readable when some turn has come. `reap` makes it unreadable.
  int descriptor() const { return come_.get(); }
  void reap() const;
  // Gives all turns back, and says BYE. The thread has ended when the call returns; all turns may store from then on.
  void leave();

 private:
  // One application at one target. The thread uses it, but for `handed`.
  struct Applying {
    Applying(event::Applicant whose, std::function<void()> wake, TurnLimits limits)
        : turn(std::make_shared<WriteBackTurn>(std::move(whose), std::move(wake))), course(limits) {}

    const WriteBackTurnPtr turn;
    std::weak_ptr<WriteBackTurn> handed;  // given to openings; guarded by the mutex
    TurnCourse course;
    std::optional<bus::Client> client;  // empty while hocketd is not connected
    Time connect_at{};                  // earliest time of the next attempt
    RequestId request;                  // the latest
    Time granted{};
    Time renew_at{};
    Duration lease = std::chrono::seconds{5};
    bool complained = false;  // about a turn that did not come, and none came since
  };

  void run();
  std::vector<Applying*> present();
  void forget_unused();
  void sleep(const std::vector<Applying*>& all, Time until);
  void look(Applying& one, Time now);
  void hear(Applying& one);
  void take(Applying& one, const event::Body& said);
  void feed(Applying& one, TurnInput input);
  void send(Applying& one, const TurnCourse::Messages& messages);
  bool connect(Applying& one);
  void post(Applying& one, const event::Body& body);
  void publish(Applying& one) const;
  void complain(Applying& one, const std::string& why) const;

  const std::string socket_;
  const TurnLimits limits_;
  const LogSink say_;
  std::shared_ptr<const bus::Fd> wake_;  // eventfd; turns keep it, because they may outlive this object
  bus::Fd come_;                         // eventfd
  std::atomic<bool> leaving_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Applying>> all_;  // guarded by the mutex; only the thread removes any
  std::thread thread_;
};

}  // namespace hocket::server
