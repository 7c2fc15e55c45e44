#include "runtime/lease.hpp"

#include <algorithm>
#include <system_error>

#include "runtime/signals_blocked.hpp"

namespace hocket::runtime {
namespace {

constexpr Duration shortest_interval = std::chrono::milliseconds{5};

}  // namespace

void LeaseKeeper::hold(RequestId request, Duration lease) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  held_.push_back(request);
  interval_ = std::max(lease / 3, shortest_interval);
  if (thread_.joinable()) return;
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // No thread to be had: the lease ends early, others go on, and so do we.
  }
}

void LeaseKeeper::release(RequestId request) {
  const std::lock_guard lock(mutex_);
  std::erase(held_, request);
}

void LeaseKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void LeaseKeeper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, interval_);
    if (stopping_) return;
    for (const RequestId request : held_) renew_(request);
  }
}

}  // namespace hocket::runtime
