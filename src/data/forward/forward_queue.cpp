#include "forward/forward_queue.hpp"

#include <utility>

namespace hocket::forward {

using request_scheduler::IoRequest;
using request_scheduler::NextBatch;

std::uint64_t ForwardQueue::number_of(const std::string& application) {
  const std::lock_guard lock(mutex_);
  return numbers_.emplace(application, numbers_.size() + 1).first->second;
}

bool ForwardQueue::add(IoRequest request) {
  const std::lock_guard lock(mutex_);
  return static_cast<bool>(scheduler_.add(std::move(request)));
}

NextBatch ForwardQueue::take(Time now) {
  const std::lock_guard lock(mutex_);
  return scheduler_.next(now);
}

bool ForwardQueue::has_more() const {
  const std::lock_guard lock(mutex_);
  return scheduler_.waiting() > 0;
}

void ForwardQueue::done(std::uint64_t batch) {
  const std::lock_guard lock(mutex_);
  scheduler_.done(batch);
}

Status ForwardQueue::use(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return scheduler_.use(name, {});
}

std::string ForwardQueue::state() const {
  const std::lock_guard lock(mutex_);
  std::string text = "forward_scheduler " + scheduler_.name() + "\n";
  for (const auto& [name, number] : numbers_) {
    const auto found = scheduler_.statistics().find(number);
    if (found == scheduler_.statistics().end()) continue;
    const auto& one = found->second;
    text += "forwarded_of " + name + " requests " + std::to_string(one.requests) + " bytes " +
            std::to_string(one.bytes) + " waited_ns " + std::to_string(one.waited.count()) + " most_waited_ns " +
            std::to_string(one.most_waited.count()) + "\n";
  }
  return text;
}

}  // namespace hocket::forward
