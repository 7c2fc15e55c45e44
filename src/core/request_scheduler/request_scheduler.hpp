// Decides in which order the requests of an I/O server are carried out, and which of them together. Pure.
//
//   add ──► blocked ──► eligible ──► under way ──► done          next(now) returns a batch of eligible requests
//              an older request that conflicts is unfinished
//
// Two requests conflict if they touch the same bytes of a file and at least one writes, or if they have the same
// `order`. Conflicting requests are carried out in the order of `add`, whatever the algorithm. All other requests are
// eligible at once, and the algorithm chooses among them. The algorithm may be changed at any moment: waiting requests
// stay where they are, and the new one chooses among the same eligible requests.
//
// No request starves: once the oldest eligible request is overdue (`most_wait`), at least one batch of `overdue_period`
// goes to it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "request_scheduler/access_order.hpp"
#include "request_scheduler/algorithm.hpp"
#include "request_scheduler/pending.hpp"
#include "request_scheduler/request.hpp"
#include "request_scheduler/settings.hpp"

namespace hocket::request_scheduler {

// Sums of what was dispatched for one application.
struct ApplicationStatistics {
  std::uint64_t requests = 0;
  std::int64_t bytes = 0;
  Duration waited{};         // from arrival to dispatch, all requests
  Duration most_waited{};    // of one request
  std::uint64_t merged = 0;  // requests that shared a batch with others
};

// The answer of `next`: a batch; or else when to ask again, unless `add` or `done` comes before; or neither, if only
// `add` or `done` can change the answer.
struct NextBatch {
  std::optional<RequestBatch> batch;
  std::optional<Time> again;
};

// The scheduler is not thread-safe, and may be moved. Times do not fall from call to call.
class RequestScheduler {
 public:
  // Fails if no algorithm has the name (algorithm_names), or a setting is out of range.
  static Result<RequestScheduler> create(std::string_view name, const SchedulerSettings& settings = {});

  // Appends a request. Fails, and changes nothing, if its ticket is in use, its extents are not rising and disjoint, it
  // has neither extent nor order, or more than 1 TiB.
  Status add(IoRequest request);
  // Returns the next batch, which may run beside all batches under way.
  NextBatch next(Time now);
  // Notes that a batch has been carried out. PendingRequests that conflict with it may run then. Returns false if no
  // such batch is under way.
  bool done(std::uint64_t batch);
  // Removes the waiting requests for which the function is true, and returns their tickets, oldest first.
  std::vector<std::uint64_t> drop_if(const std::function<bool(const IoRequest&)>& which);

  // Changes algorithm and settings. Fails, and changes nothing, as `create` does.
  Status use(std::string_view name, const SchedulerSettings& settings);
  const std::string& name() const { return name_; }
  // True if requests should name their data server, where it can be found out.
  bool needs_data_servers() const { return algorithm_->needs_data_servers(); }

  std::size_t waiting() const { return waiting_; }
  std::uint64_t batches() const { return last_batch_; }  // dispatched since the start
  const std::map<std::uint64_t, ApplicationStatistics>& statistics() const { return statistics_; }
  // Removes the statistics of an application that has left.
  void forget(std::uint64_t application) { statistics_.erase(application); }

 private:
  using PendingRequests = std::vector<PendingRequest*>;

  RequestScheduler(std::string_view name, const SchedulerSettings& settings, std::unique_ptr<Algorithm> algorithm)
      : name_(name), settings_(settings), algorithm_(std::move(algorithm)) {}

  Status check(const IoRequest& request) const;
  void make_eligible(PendingRequest& request);
  void leave_queue(PendingRequest& request, Departure why);
  void finish(PendingRequest& request);
  ScheduleChoice choose(Time now);
  RequestBatch dispatch(const PendingRequests& requests, Time now);
  void count(const PendingRequest& request, bool merged, Time now);

  std::string name_;
  SchedulerSettings settings_;
  std::unique_ptr<Algorithm> algorithm_;
  std::unordered_map<std::uint64_t, std::unique_ptr<PendingRequest>> requests_;  // by ticket
  std::unordered_map<const PendingRequest*, std::unique_ptr<PendingRequest>> dropped_;
  std::unordered_map<std::uint64_t, AccessOrder> files_;
  std::unordered_map<QueueKey, RequestQueue, QueueKeyHash> queues_;
  std::unordered_map<std::uint64_t, PendingRequests> under_way_;  // by number of the batch
  ByAge eligible_;
  std::map<std::uint64_t, ApplicationStatistics> statistics_;  // by application
  std::size_t waiting_ = 0;
  std::size_t batches_since_overdue_ = 0;
  std::uint64_t last_sequence_ = 0;
  std::uint64_t last_queue_ = 0;
  std::uint64_t last_batch_ = 0;
};

}  // namespace hocket::request_scheduler
