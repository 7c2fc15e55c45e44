// The I/O threads run blocking calls, so that the server's loop stays responsive to its clients.
//
// A job runs in an I/O thread and returns a function, which the loop then calls with the job's result. So threads
// share nothing but the jobs themselves.
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

// A fixed pool of threads with one queue. The owner's thread calls all public functions but `wake`.
class Workers {
 public:
  using JobCompletion = std::function<void()>;  // runs in the owner's thread
  // Runs in an I/O thread; must not throw.
  using WorkerJob = std::function<JobCompletion(std::span<std::byte> scratch)>;

  explicit Workers(int threads);
  ~Workers();  // waits for all submitted jobs; their results are dropped
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Queues a job. Jobs start in the order of submission.
  void submit(WorkerJob job);
  // Runs the functions that finished jobs have returned.
  void reap();
  // Makes `descriptor` readable. Any thread may call it.
  void wake() const;
  // Returns a descriptor that is readable when `reap` has something to do, or after `wake`.
  int descriptor() const { return wake_.get(); }
  // Returns the number of jobs that were submitted and not reaped.
  std::size_t busy() const { return busy_; }
  std::size_t threads() const { return threads_.size(); }

 private:
  void work();

  Fd wake_;               // eventfd, counts finished jobs
  std::size_t busy_ = 0;  // of the owner's thread
  std::mutex mutex_;      // guards jobs_, ended_ and leaving_
  std::condition_variable come_;
  std::deque<WorkerJob> jobs_;
  std::vector<JobCompletion> ended_;
  bool leaving_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hocket::server
