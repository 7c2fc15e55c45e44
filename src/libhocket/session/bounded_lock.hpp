// A lock for the wrappers of POSIX I/O, which may run in a signal handler. The interrupted code of this thread may hold
// the allocator's lock, on which the mutex's holder waits. So the wait for the mutex has a bound, and no system call is
// made while the mutex is free.
#pragma once

#include <mutex>

#include "base/time.hpp"

namespace hocket::runtime {

// Holds a mutex for the object's lifetime, or nothing if the mutex was not released in time. Precondition: no code that
// this thread has interrupted holds the mutex (Inside::any() is false in code that may).
class BoundedLock {
 public:
  static constexpr Duration longest_wait = std::chrono::milliseconds{100};

  explicit BoundedLock(std::mutex& mutex) : mutex_(mutex), owns_(mutex.try_lock() || wait()) {}
  ~BoundedLock() {
    if (owns_) mutex_.unlock();
  }
  BoundedLock(const BoundedLock&) = delete;
  BoundedLock& operator=(const BoundedLock&) = delete;

  explicit operator bool() const { return owns_; }

 private:
  bool wait();

  std::mutex& mutex_;
  const bool owns_;
};

}  // namespace hocket::runtime
