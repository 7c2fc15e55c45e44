// aIOLi and MLF let a queue wait for requests that would make a better batch; this decides when. Pure.
//
// Two signs, from the offsets of a queue's last batches (AGIOS, waiting_common.c, after aIOLi):
// - shift: a batch began before the previous one, so one process lags behind; the next request lies beyond its end.
// - aggregation: the last batch had more requests than the next one would have, and the next one does not follow it.
// Each lets the queue wait once, for `aggregation_wait`. Decided here: the wait ends early when the request that it is
// for arrives, which begins at the end of the last batch.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {

// A record of a queue's last batches. It outlives the queue, which is empty now and then.
struct QueueHistory {
  std::int64_t last_at = -1;
  std::int64_t last_end = -1;
  std::size_t last_requests = 0;
  std::int64_t quantum = 0;                 // aIOLi; 0: not known yet
  std::optional<std::int64_t> shift_end{};  // end of a batch that began before the previous one
  std::optional<Time> until{};              // the queue waits
};

// The histories of the most recent queues. Not thread-safe.
class AggregationWait {
 public:
  explicit AggregationWait(Duration wait) : wait_(wait) {}

  // Returns the history of a queue; it stays valid until the next call for another queue.
  QueueHistory& of(const QueueKey& key);
  // Returns until when the queue waits instead of dispatching `next`, if it does. `next` is chosen from `queue`.
  std::optional<Time> begins(const RequestQueue& queue, const PendingRequest& next, Time now);
  // Returns until when a wait goes on, if it does.
  std::optional<Time> goes_on(const RequestQueue& queue, Time now);
  // Ends the wait of the request's queue if the request is what it waits for. Returns true if so.
  bool ends_by(const PendingRequest& request);
  void dispatched(const Dispatch& dispatch);

 private:
  Duration wait_;
  std::unordered_map<QueueKey, QueueHistory, QueueKeyHash> histories_;
  std::deque<QueueKey> by_age_;
};

// Returns how often a quantum must be doubled to reach the bytes.
std::uint64_t doublings(std::int64_t bytes, std::int64_t quantum);

}  // namespace hocket::request_scheduler
