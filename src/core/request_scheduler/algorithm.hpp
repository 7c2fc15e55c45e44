// The interface that an algorithm implements to become a request scheduler. Pure.
//
//   RequestScheduler ── added, removed, dispatched ──► Algorithm
//                    ◄── Choice ── choose
//
// RequestScheduler (request_scheduler.hpp) keeps the order of conflicting requests, merges, and counts. An algorithm
// only sees eligible requests, which may be carried out in any order, and chooses one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "request_scheduler/pending.hpp"
#include "request_scheduler/settings.hpp"

namespace hocket::request_scheduler {

// The requests of the chosen one's queue that join its batch.
enum class Merging {
  none,
  touching,  // those that reach each other without a gap, or with a gap that reads may have
  all,       // those from the chosen one on, in the order of their offsets
};

struct ScheduleChoice {
  PendingRequest* first = nullptr;
  Merging merging = Merging::none;
  // Further bounds of a batch of several requests, besides those of the settings.
  std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();
  std::size_t most_requests = std::numeric_limits<std::size_t>::max();
  std::optional<Time> again{};  // without `first`: when a request may be chosen, if none comes before
};

// Requests that were dispatched together.
struct Dispatch {
  const QueueKey& key;
  std::int64_t at = 0;
  std::int64_t end = 0;
  std::int64_t bytes = 0;
  std::size_t requests = 0;
};

enum class Departure { dispatched, dropped };

// Calls come from one thread. Times do not fall.
class Algorithm {
 public:
  Algorithm() = default;
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;
  virtual ~Algorithm() = default;

  // A request became eligible; its queue contains it.
  virtual void added(PendingRequest& request) = 0;
  // A request is not eligible any more. Its queue does not contain it; an empty queue ends after this call.
  virtual void removed(PendingRequest& request, Departure why) = 0;
  // Chooses a request, which is dispatched at once, perhaps with others. Precondition: `eligible`, which has all
  // eligible requests, is not empty.
  virtual ScheduleChoice choose(const ByAge& eligible, Time now) = 0;
  // Follows `removed` of each request of a batch. The batch need not be the chosen one: an overdue request may go
  // first.
  virtual void dispatched(const Dispatch&) {}
  // True if requests should name their data server, where it can be found out.
  virtual bool needs_data_servers() const { return false; }
};

// An algorithm as the registry lists it.
struct AlgorithmEntry {
  std::string_view name;
  std::unique_ptr<Algorithm> (*make)(const SchedulerSettings& settings);
};

// Returns the names in the order in which tools list them.
std::vector<std::string_view> algorithm_names();
// Fails if no algorithm has the name, or a setting is out of range.
Result<std::unique_ptr<Algorithm>> make_algorithm(std::string_view name, const SchedulerSettings& settings);

// ---- the algorithms, each in a file of its own ---------------------------------------------------------------------

std::unique_ptr<Algorithm> make_fifo(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_sjf(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_to_agg(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_aioli(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_mlf(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_hbrr(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_twins(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_wfq(const SchedulerSettings& settings);
// Statistical tokens, one for each rule of sharing.
std::unique_ptr<Algorithm> make_job_fair(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_user_fair(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_size_fair(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_user_job_fair(const SchedulerSettings& settings);
std::unique_ptr<Algorithm> make_user_size_fair(const SchedulerSettings& settings);

}  // namespace hocket::request_scheduler
