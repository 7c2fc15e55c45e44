// The helper thread of a session. It renews the leases of the grants that this process holds, receives messages
// from hocketd while no other thread does, and runs timed duties.
//
// The first use starts the thread, with all signals blocked; `stop` ends it. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/ids.hpp"
#include "base/kept_descriptor.hpp"
#include "base/time.hpp"

namespace hocket::runtime {

class LeaseKeeper {
 public:
  // The callbacks of the keeper. The keeper's thread calls them, and none of them after `stop` has returned.
  struct Duties {
    // Renews one lease. It is never called after `release` of that request has returned. It runs under the keeper's
    // lock, so it must not call the keeper.
    std::function<void(RequestId)> renew;
    // Handles the messages that have come, and returns the descriptor to poll, or -1. It is called repeatedly while a
    // message is expected.
    std::function<int()> listen = [] { return -1; };
    // Does what is due now, and returns the time of the next duty, or Time::max() if there is none.
    std::function<Time(Time)> due = [](Time) { return Time::max(); };
  };
  explicit LeaseKeeper(Duties duties) : duties_(std::move(duties)) {}
  ~LeaseKeeper() { stop(); }
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Renews the grant at least once in each third of its lease, until `release`. The grant may be held already. The
  // interval of the latest call holds for all grants.
  void hold(RequestId request, Duration lease);
  void release(RequestId request);

  // Makes the thread listen from soon on, until `expect(false)` has been called as often as `expect(true)`. While
  // grants are held, it listens anyway.
  void expect(bool something);

  // Makes the thread, if it runs, call `listen` and `due` at once, because there is something new for them.
  void wake();

  // Ends the thread and waits for its end. Later calls of the other functions do nothing.
  void stop();

 private:
  void run();
  // The functions from here to `renew` need the lock held.
  void start();
  void set_alarm(Duration from_now) const;
  bool listens() const { return !held_.empty() || expecting_ > 0; }
  void renew(Time now);
  void sleep(int listened, Time until) const;

  Duties duties_;
  std::mutex mutex_;
  std::vector<RequestId> held_;
  int expecting_ = 0;    // calls of expect(true) without their expect(false)
  Duration interval_{};  // between two renewals
  Time renewed_{};       // the last renewal
  bool stopping_ = false;
  bool woken_ = false;  // `wake` has set the alarm: it must not be set anew before it has ended the sleep
  KeptFd alarm_;        // timer that ends the thread's sleep; empty if the program has closed it
  std::thread thread_;
};

}  // namespace hocket::runtime
