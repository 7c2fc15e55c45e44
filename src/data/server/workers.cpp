#include "server/workers.hpp"

#include <sys/eventfd.h>

#include <memory>

#include "server/storage.hpp"

namespace hocket::server {

Workers::Workers(int threads) : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock{mutex_};
    leaving_ = true;
  }
  come_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::submit(WorkerJob job) {
  ++busy_;
  {
    const std::lock_guard lock{mutex_};
    jobs_.push_back(std::move(job));
  }
  come_.notify_one();
}

void Workers::wake() const {
  constexpr std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

void Workers::reap() {
  std::uint64_t count = 0;
  // The eventfd is reset before the results are taken, so that a job that finishes in between raises it again.
  (void)!read(wake_.get(), &count, sizeof count);
  std::vector<JobCompletion> ended;
  {
    const std::lock_guard lock{mutex_};
    ended.swap(ended_);
  }
  busy_ -= ended.size();
  for (const JobCompletion& after : ended) after();
}

void Workers::work() {
  // Each thread has scratch memory of its own, allocated once.
  const std::unique_ptr<std::byte[]> scratch{new std::byte[scratch_bytes]};
  std::unique_lock lock{mutex_};
  while (true) {
    come_.wait(lock, [this] { return leaving_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const WorkerJob job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    JobCompletion after = job({scratch.get(), scratch_bytes});
    lock.lock();
    ended_.push_back(std::move(after));
    wake();
  }
}

}  // namespace hocket::server
