// The one thread that libhocket may have: it renews the leases of the grants that this process holds, listens to
// hocketd while no other thread does, and does what is due at a time.
//
// The thread is started by the first use, with all signals blocked, and ends with `stop`. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"

namespace hocket::runtime {

class LeaseKeeper {
 public:
  // All are called from the keeper's thread, and not after `stop` has returned.
  struct Duties {
    std::function<void(RequestId)> renew;  // never after `release` of that request has returned
    // The descriptor to be listened to, or -1; called again and again while something is awaited. What has come by then
    // is taken in first.
    std::function<int()> listen = [] { return -1; };
    // Does what is due by now, and says when there is more; Time::max(): nothing.
    std::function<Time(Time)> due = [](Time) { return Time::max(); };
  };
  explicit LeaseKeeper(Duties duties) : duties_(std::move(duties)) {}
  ~LeaseKeeper() { stop(); }
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // The grant is renewed at least once in each third of its lease, until it is released. It may be held already.
  void hold(RequestId request, Duration lease);
  void release(RequestId request);

  // Listens from soon on, until `expect(false)` has been called as often; while grants are held it does anyway.
  void expect(bool something);

  // There is something new for `listen` or `due`: a thread that there is looks at once.
  void wake();

  // Ends the thread. Nothing is done after it.
  void stop();

 private:
  void run();
  // The lock is held.
  void start();
  void set_alarm(Duration from_now) const;
  bool listens() const { return !held_.empty() || expecting_ > 0; }
  void renew(Time now);
  void sleep(int listened, Time until) const;

  Duties duties_;
  std::mutex mutex_;
  std::vector<RequestId> held_;
  int expecting_ = 0;
  Duration interval_{};
  Time renewed_{};
  bool stopping_ = false;
  bool woken_ = false;  // the alarm must not be set anew before it has ended the sleep
  Fd alarm_;            // a timer that ends the thread's sleep
  std::thread thread_;
};

}  // namespace hocket::runtime
