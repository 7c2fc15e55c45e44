#include "request_scheduler/request_scheduler.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/saturating.hpp"
#include "request_scheduler/merge.hpp"

namespace hocket::request_scheduler {
namespace {

// Bound on the bytes of a request, so that sums of bytes do not overflow.
constexpr std::int64_t most_request_bytes = std::int64_t{1} << 40;

// Fills in what follows from the extents.
void locate(PendingRequest& pending) {
  IoRequest& request = pending.request;
  if (request.extents.empty()) {
    pending.end = std::numeric_limits<std::int64_t>::max();
    return;
  }
  pending.at = request.extents.front().at;
  pending.end = request.extents.back().end();
  request.bytes = 0;
  for (const FileExtent& extent : request.extents) request.bytes += extent.length;
}

Error fault(const IoRequest& request, const std::string& what) {
  return Error{"request " + std::to_string(request.ticket) + " of file " + std::to_string(request.file) + ": " + what};
}

}  // namespace

Result<RequestScheduler> RequestScheduler::create(std::string_view name, const SchedulerSettings& settings) {
  auto algorithm = make_algorithm(name, settings);
  if (!algorithm) return algorithm.error();
  return RequestScheduler{name, settings, std::move(algorithm).value()};
}

Status RequestScheduler::use(std::string_view name, const SchedulerSettings& settings) {
  auto algorithm = make_algorithm(name, settings);
  if (!algorithm) return algorithm.error();
  name_ = name;
  settings_ = settings;
  algorithm_ = std::move(algorithm).value();
  for (PendingRequest* request : eligible_) algorithm_->added(*request);
  return success();
}

Status RequestScheduler::check(const IoRequest& request) const {
  if (requests_.contains(request.ticket)) return fault(request, "the ticket is in use");
  if (request.extents.empty() && request.order == 0) return fault(request, "it needs an extent or an order");
  if (request.extents.empty() && (request.bytes < 0 || request.bytes > most_request_bytes)) {
    return fault(request, "invalid length " + std::to_string(request.bytes));
  }
  if (request.processes < 1 || !(request.weight > 0)) return fault(request, "processes and weight must be positive");
  std::int64_t end = 0;
  std::int64_t left = most_request_bytes;
  for (const FileExtent& extent : request.extents) {
    const bool in_range = extent.length >= 0 && extent.length <= left &&
                          extent.at <= std::numeric_limits<std::int64_t>::max() - extent.length;
    if (extent.at < end || !in_range) {
      return fault(request, "extent of " + std::to_string(extent.length) + " bytes at " + std::to_string(extent.at) +
                                ": extents must rise, be disjoint, and have at most 1 TiB in all");
    }
    end = extent.end();
    left -= extent.length;
  }
  return success();
}

Status RequestScheduler::add(IoRequest request) {
  if (Status status = check(request); !status) return status;
  auto& owned = requests_[request.ticket];
  owned = std::make_unique<PendingRequest>();
  PendingRequest& pending = *owned;
  pending.request = std::move(request);
  pending.sequence = ++last_sequence_;
  locate(pending);
  if (!pending.request.is_offer) {
    pending.file = &files_[pending.request.file];
    pending.file->add(pending);
  }
  ++waiting_;
  if (pending.blockers == 0) make_eligible(pending);
  return success();
}

void RequestScheduler::make_eligible(PendingRequest& pending) {
  const IoRequest& request = pending.request;
  const QueueKey key{request.file, request.order, request.flags, request.writes};
  RequestQueue& queue = queues_[key];
  if (queue.number == 0) {
    queue.key = key;
    queue.number = ++last_queue_;
  }
  pending.state = PendingRequest::State::eligible;
  pending.queue = &queue;
  queue.requests.insert(&pending);
  queue.bytes += pending.bytes();
  eligible_.insert(eligible_.end(), &pending);
  algorithm_->added(pending);
}

// The request is dispatched or dropped: its queue and the algorithm forget it.
void RequestScheduler::leave_queue(PendingRequest& pending, Departure why) {
  RequestQueue& queue = *pending.queue;
  queue.requests.erase(&pending);
  queue.bytes -= pending.bytes();
  eligible_.erase(&pending);
  --waiting_;
  algorithm_->removed(pending, why);
  pending.queue = nullptr;
  if (queue.requests.empty()) queues_.erase(QueueKey{queue.key});
}

// Forgets a request, and with it dropped ones that only waited for their turn. The others that waited become eligible.
void RequestScheduler::finish(PendingRequest& request) {
  PendingRequests finished{&request};
  while (!finished.empty()) {
    PendingRequest& one = *finished.back();
    finished.pop_back();
    if (one.file != nullptr) one.file->remove(one);
    for (PendingRequest* dependent : one.dependents) {
      if (--dependent->blockers > 0) continue;
      if (dependent->dropped) {
        finished.push_back(dependent);
      } else {
        make_eligible(*dependent);
      }
    }
    if (one.file != nullptr && one.file->empty()) files_.erase(one.request.file);
    if (one.dropped) {
      dropped_.erase(&one);
    } else {
      requests_.erase(one.request.ticket);
    }
  }
}

// The oldest request goes first if it is overdue and its turn has come, or if the algorithm has nothing to do now.
ScheduleChoice RequestScheduler::choose(Time now) {
  PendingRequest& oldest = **eligible_.begin();
  const bool overdue = oldest.waited(now) >= settings_.most_wait;
  if (overdue && batches_since_overdue_ + 1 >= overdue_period) {
    batches_since_overdue_ = 0;
    return {&oldest};
  }
  ScheduleChoice choice = algorithm_->choose(eligible_, now);
  if (choice.first == nullptr && overdue) {
    batches_since_overdue_ = 0;
    return {&oldest};
  }
  if (choice.first != nullptr) {
    ++batches_since_overdue_;
    return choice;
  }
  const Time due = saturating_sum(oldest.request.arrival, settings_.most_wait);
  choice.again = std::min(choice.again.value_or(due), due);
  return choice;
}

NextBatch RequestScheduler::next(Time now) {
  if (eligible_.empty()) return {};
  const ScheduleChoice choice = choose(now);
  if (choice.first == nullptr) return {std::nullopt, choice.again};
  return {dispatch(joined(choice, settings_), now), std::nullopt};
}

RequestBatch RequestScheduler::dispatch(const PendingRequests& requests, Time now) {
  RequestBatch batch = batch_of(requests, settings_);
  batch.number = ++last_batch_;
  const QueueKey key = requests.front()->queue->key;
  std::int64_t end = 0;
  for (PendingRequest* request : requests) {
    request->state = PendingRequest::State::under_way;
    end = std::max(end, request->end);
    leave_queue(*request, Departure::dispatched);
    if (!request->request.is_offer) count(*request, requests.size() > 1, now);
  }
  algorithm_->dispatched({key, requests.front()->at, end, batch.bytes, requests.size()});
  under_way_.emplace(batch.number, requests);
  return batch;
}

void RequestScheduler::count(const PendingRequest& request, bool merged, Time now) {
  ApplicationStatistics& application = statistics_[request.request.application];
  const Duration waited = request.waited(now);
  ++application.requests;
  application.bytes = saturating_sum(application.bytes, request.bytes());
  application.waited = saturating_sum(application.waited, waited);
  application.most_waited = std::max(application.most_waited, waited);
  if (merged) ++application.merged;
}

bool RequestScheduler::done(std::uint64_t batch) {
  const auto found = under_way_.find(batch);
  if (found == under_way_.end()) return false;
  const PendingRequests requests = std::move(found->second);
  under_way_.erase(found);
  for (PendingRequest* request : requests) finish(*request);
  return true;
}

std::vector<std::uint64_t> RequestScheduler::drop_if(const std::function<bool(const IoRequest&)>& which) {
  ByAge chosen;
  for (const auto& [ticket, request] : requests_) {
    if (request->state != PendingRequest::State::under_way && which(request->request)) chosen.insert(request.get());
  }
  std::vector<std::uint64_t> tickets;
  PendingRequests eligible;
  for (PendingRequest* request : chosen) {
    tickets.push_back(request->request.ticket);
    // Younger requests may wait for what the dropped one waits for, so a blocked one stays in the order of its file.
    request->dropped = true;
    const auto found = requests_.find(request->request.ticket);
    dropped_.emplace(request, std::move(found->second));
    requests_.erase(found);
    if (request->state == PendingRequest::State::blocked) {
      --waiting_;
    } else {
      eligible.push_back(request);
    }
  }
  for (PendingRequest* request : eligible) {
    leave_queue(*request, Departure::dropped);
    finish(*request);
  }
  return tickets;
}

}  // namespace hocket::request_scheduler
