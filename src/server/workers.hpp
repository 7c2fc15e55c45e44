// The I/O threads: what would keep the server's loop from its clients.
//
// A job runs in a thread and gives back what is to be done with its result, which the loop then does: so that nothing
// but the jobs themselves is shared between threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"

namespace hocket::server {

class Workers {
 public:
  using After = std::function<void()>;
  using Job = std::function<After(std::span<std::byte> scratch)>;

  explicit Workers(int threads);
  ~Workers();  // waits for the jobs under way
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void submit(Job job);
  // Does what is to be done after the jobs that have ended.
  void reap();
  // Readable when some have.
  int descriptor() const { return wake_.get(); }
  // Jobs that were submitted and not reaped.
  std::size_t busy() const { return busy_; }
  std::size_t threads() const { return threads_.size(); }

 private:
  void work();

  Fd wake_;
  std::size_t busy_ = 0;
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<Job> jobs_;
  std::vector<After> ended_;
  bool leaving_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hocket::server
