// The calls that wait in a server for a thread, in the order of a request scheduler (core/request_scheduler).
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "request_scheduler/request_scheduler.hpp"

namespace hocket::forward {

// Thread-safe.
class ForwardQueue {
 public:
  explicit ForwardQueue(request_scheduler::RequestScheduler scheduler) : scheduler_(std::move(scheduler)) {}

  // Returns the number of an application, which requests carry. An application has the same one for ever.
  std::uint64_t number_of(const std::string& application);
  // Queues a call. Returns false if the scheduler refuses it: it is then to be carried out without waiting.
  bool add(request_scheduler::IoRequest request);
  // Returns what to carry out now, or when to ask again.
  request_scheduler::NextBatch take(Time now);
  // True if calls wait that no batch contains.
  bool has_more() const;
  // Notes that a batch has been carried out.
  void done(std::uint64_t batch);

  Status use(std::string_view name);
  // Returns lines of text: the scheduler's name, and for each application requests, bytes, and waiting times.
  std::string state() const;

 private:
  mutable std::mutex mutex_;
  request_scheduler::RequestScheduler scheduler_;
  std::map<std::string, std::uint64_t> numbers_;
};

}  // namespace hocket::forward
