#include "request_scheduler/aggregation_wait.hpp"

#include "base/saturating.hpp"
#include "request_scheduler/merge.hpp"

namespace hocket::request_scheduler {

// Bound on the queues whose history is kept; the one that came first is forgotten.
constexpr std::size_t most_histories = 4096;

QueueHistory& AggregationWait::of(const QueueKey& key) {
  const auto [found, is_new] = histories_.try_emplace(key);
  if (!is_new) return found->second;
  by_age_.push_back(key);
  if (by_age_.size() > most_histories) {
    histories_.erase(by_age_.front());
    by_age_.pop_front();
  }
  return histories_.find(key)->second;
}

std::optional<Time> AggregationWait::begins(const RequestQueue& queue, const PendingRequest& next, Time now) {
  if (queue.key.order != 0 || wait_ == Duration{}) return std::nullopt;
  QueueHistory& history = of(queue.key);
  bool waits = false;
  if (history.shift_end) {
    waits = next.at > *history.shift_end;
    history.shift_end.reset();
  } else if (next.at > history.last_end && history.last_requests > 1) {
    waits = touching_at_head(queue, history.last_requests) < history.last_requests;
    if (waits) history.last_requests = 0;
  }
  if (!waits) return std::nullopt;
  history.until = saturating_sum(now, wait_);
  return history.until;
}

std::optional<Time> AggregationWait::goes_on(const RequestQueue& queue, Time now) {
  if (queue.key.order != 0) return std::nullopt;
  QueueHistory& history = of(queue.key);
  if (history.until && *history.until <= now) history.until.reset();
  return history.until;
}

bool AggregationWait::ends_by(const PendingRequest& request) {
  if (request.request.order != 0) return false;
  QueueHistory& history = of(request.queue->key);
  if (!history.until || request.at != history.last_end) return false;
  history.until.reset();
  return true;
}

void AggregationWait::dispatched(const Dispatch& dispatch) {
  if (dispatch.key.order != 0) return;
  QueueHistory& history = of(dispatch.key);
  history.last_end = dispatch.end;
  if (dispatch.at < history.last_at && !history.shift_end) history.shift_end = dispatch.end;
  history.last_at = dispatch.at;
  history.last_requests = dispatch.requests;
  history.until.reset();
}

std::uint64_t doublings(std::int64_t bytes, std::int64_t quantum) {
  std::uint64_t count = 0;
  while (quantum < bytes && count < 62) {
    quantum = saturating_product(quantum, 2);
    ++count;
  }
  return count;
}

}  // namespace hocket::request_scheduler
