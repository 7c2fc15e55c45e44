// Renews the leases of the grants that this process holds, from the one thread that libhocket may have.
//
// The thread is started by the first grant, with all signals blocked, and ends with `stop`. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace hocket::runtime {

class LeaseKeeper {
 public:
  // `renew` is called from the keeper's thread, never after `release` of that request has returned.
  explicit LeaseKeeper(std::function<void(RequestId)> renew) : renew_(std::move(renew)) {}
  ~LeaseKeeper() { stop(); }
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // The grant is renewed at least once in each third of its lease, until it is released.
  void hold(RequestId request, Duration lease);
  void release(RequestId request);

  // Ends the thread. Nothing is renewed after it.
  void stop();

 private:
  void run();

  std::function<void(RequestId)> renew_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RequestId> held_;
  Duration interval_{};
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hocket::runtime
