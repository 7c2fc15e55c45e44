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

// Another scheduler, as SET_SERVER and the command line name it.
struct SchedulerChoice {
  std::string name = "fifo";      // request_scheduler::algorithm_names
  std::int64_t data_servers = 0;  // of the file system, for TWINS; 0: as before
  std::int64_t stripe_bytes = 0;  // of a file on one of them; 0: as before
};

// Thread-safe.
class ForwardQueue {
 public:
  struct Switched {
    std::string previous;      // scheduler
    std::int64_t waiting = 0;  // calls that wait, and are the new one's
  };
  struct Waiting {
    std::int64_t calls = 0;  // that wait now
    Duration waited{};       // from arrival to dispatch, of all calls since the start
  };

  // Fails if no scheduler has the name, or a number is out of range.
  static Result<request_scheduler::RequestScheduler> scheduler_for(const SchedulerChoice& choice);
  ForwardQueue(request_scheduler::RequestScheduler scheduler, const SchedulerChoice& choice);

  // Returns the number of an application, which requests carry.
  std::uint64_t number_of(const std::string& application);
  // Queues a call. Returns false if the scheduler refuses it: it is then to be carried out without waiting.
  bool add(request_scheduler::IoRequest request);
  // Returns what to carry out now, or when to ask again.
  request_scheduler::NextBatch take(Time now);
  // True if calls wait that no batch contains.
  bool has_more() const;
  // Notes that a batch has been carried out.
  void done(std::uint64_t batch);

  // Changes the scheduler. Calls that wait become the new one's in the order of their arrival; those that touch the
  // same bytes keep their order. Fails, and changes nothing, as `scheduler_for` does.
  Result<Switched> use(const SchedulerChoice& choice);
  std::string scheduler() const;
  Waiting waiting() const;
  // Returns a line for each application, "CALLS BYTES WAITED_NS NAME": sums since the start, those with the most bytes
  // first, 32 at most.
  std::string shares() const;

 private:
  mutable std::mutex mutex_;
  request_scheduler::RequestScheduler scheduler_;
  request_scheduler::SchedulerSettings settings_;
  std::map<std::string, std::uint64_t> numbers_;
  std::uint64_t last_number_ = 0;
  Duration forgotten_{};  // waited by applications that have been forgotten
};

}  // namespace hocket::forward
