// Handle-based round robin (Ohta, Kimpe, Cope, Iskra, Ross, Ishikawa: Optimization techniques at the I/O forwarding
// layer, CLUSTER 2010; IOFSL's MergeRangeScheduler). Queues of one file and direction take turns. A turn is a quantum
// of requests, in the order of their offsets.
//
// IOFSL gives the requests of a turn to the file system as lists. Here a turn is one batch, so it is bounded by bytes
// as well, and its requests need not touch. IOFSL counts a merged range as one request; here each counts.
#include <list>
#include <unordered_map>

#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

class HandleRoundRobin final : public Algorithm {
 public:
  explicit HandleRoundRobin(const SchedulerSettings& settings) : quantum_(settings.hbrr_quantum) {}

  void added(PendingRequest& request) override {
    const auto [place, is_new] = places_.try_emplace(request.queue->number);
    if (is_new) place->second = turns_.insert(turns_.end(), request.queue);
  }
  void removed(PendingRequest& request, Departure) override {
    if (!request.queue->requests.empty()) return;
    const auto place = places_.find(request.queue->number);
    turns_.erase(place->second);
    places_.erase(place);
  }
  ScheduleChoice choose(const ByAge&, Time) override {
    const RequestQueue& queue = *turns_.front();
    turns_.splice(turns_.end(), turns_, turns_.begin());
    ScheduleChoice choice{*queue.requests.begin(), Merging::all};
    choice.most_requests = quantum_;
    return choice;
  }

 private:
  using Turns = std::list<const RequestQueue*>;

  std::size_t quantum_;
  Turns turns_;                                                // the next one first
  std::unordered_map<std::uint64_t, Turns::iterator> places_;  // by number of the queue
};

}  // namespace

std::unique_ptr<Algorithm> make_hbrr(const SchedulerSettings& settings) {
  return std::make_unique<HandleRoundRobin>(settings);
}

}  // namespace hocket::request_scheduler
