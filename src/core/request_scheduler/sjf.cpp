// Shortest job first (AGIOS, SJF). A job is a queue: the waiting requests of one file and direction. The queue with the
// fewest bytes is next, and gives its requests in the order of their offsets, with those that touch.
//
// AGIOS lets a long queue starve. Here the bound of RequestScheduler on overdue requests prevents that.
#include <set>
#include <unordered_map>
#include <utility>

#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

class ShortestJobFirst final : public Algorithm {
 public:
  void added(PendingRequest& request) override { update(*request.queue); }
  void removed(PendingRequest& request, Departure) override { update(*request.queue); }
  ScheduleChoice choose(const ByAge&, Time) override {
    return {*shortest_.begin()->queue->requests.begin(), Merging::touching};
  }

 private:
  struct ShortestJob {
    std::int64_t bytes;
    std::uint64_t number;  // of the queue: the older one is first among equals
    const RequestQueue* queue;
    bool operator<(const ShortestJob& other) const {
      return std::pair{bytes, number} < std::pair{other.bytes, other.number};
    }
  };

  // Sorts a queue in anew after its bytes have changed.
  void update(const RequestQueue& queue) {
    const auto known = bytes_.find(queue.number);
    if (known != bytes_.end()) shortest_.erase({known->second, queue.number, &queue});
    if (!queue.requests.empty()) {
      shortest_.insert({queue.bytes, queue.number, &queue});
      bytes_[queue.number] = queue.bytes;
    } else if (known != bytes_.end()) {
      bytes_.erase(known);
    }
  }

  std::set<ShortestJob> shortest_;
  std::unordered_map<std::uint64_t, std::int64_t> bytes_;  // as sorted in, by number of the queue
};

}  // namespace

std::unique_ptr<Algorithm> make_sjf(const SchedulerSettings&) { return std::make_unique<ShortestJobFirst>(); }

}  // namespace hocket::request_scheduler
