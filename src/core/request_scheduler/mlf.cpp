// MLF, a multilevel feedback scheduler (Boito, Kassick, Navaux, Denneulin: Automatic I/O scheduling algorithm selection
// for parallel file systems, CCPE 2016; AGIOS, MLF). Queues of one file and direction are visited round robin. Each
// request begins with a small quantum, which doubles at each visit. A visit dispatches the request with the lowest
// offset whose quantum covers its bytes, with those that touch it. A queue may wait for better batches
// (aggregation_wait.hpp).
//
// Decided here: reads and writes of a file are queues of their own, because AGIOS lets reads starve writes; the size of
// the request alone counts, because it is merged when it is chosen. AGIOS visits until something is ready, so a visit
// without a dispatch costs no time.
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

#include "request_scheduler/aggregation_wait.hpp"
#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

class MultilevelFeedback final : public Algorithm {
 public:
  explicit MultilevelFeedback(const SchedulerSettings& settings)
      : quantum_(settings.mlf_quantum), waits_(settings.aggregation_wait) {}

  void added(PendingRequest& request) override {
    const auto [found, is_new] = visited_.try_emplace(request.queue->number);
    VisitedQueue& visited = found->second;
    if (is_new) {
      visited.queue = request.queue;
      visited.turn = turns_.insert(turns_.end(), &visited);
    }
    request.mark = visited.visits + 1 + doublings(request.bytes(), quantum_);
    visited.rising.emplace(std::pair{request.mark, request.sequence}, &request);
    waits_.ends_by(request);
  }

  void removed(PendingRequest& request, Departure) override {
    const auto found = visited_.find(request.queue->number);
    VisitedQueue& visited = found->second;
    if (visited.rising.erase({request.mark, request.sequence}) == 0) visited.ready.erase(&request);
    if (!request.queue->requests.empty()) return;
    turns_.erase(visited.turn);
    visited_.erase(found);
  }

  ScheduleChoice choose(const ByAge&, Time now) override {
    while (true) {
      std::optional<Time> again;
      bool is_rising = false;  // a further round may make a request ready
      for (std::size_t i = 0; i < turns_.size(); ++i) {
        VisitedQueue& visited = *turns_.front();
        turns_.splice(turns_.end(), turns_, turns_.begin());
        visit(visited);
        auto until = waits_.goes_on(*visited.queue, now);
        if (!until && visited.ready.empty()) {
          is_rising = true;
          continue;
        }
        if (!until) until = waits_.begins(*visited.queue, **visited.ready.begin(), now);
        if (!until) return {*visited.ready.begin(), Merging::touching};
        again = std::min(again.value_or(*until), *until);
      }
      if (!is_rising) return {nullptr, {}, 0, 0, again};
    }
  }
  void dispatched(const Dispatch& dispatch) override { waits_.dispatched(dispatch); }

 private:
  struct VisitedQueue {
    const RequestQueue* queue = nullptr;
    std::list<VisitedQueue*>::iterator turn{};
    std::uint64_t visits = 0;
    ByOffset ready;  // quantum covers the bytes
    // The others, by the visit that makes them ready, which is also the mark of the request, and by age.
    std::map<std::pair<std::uint64_t, std::uint64_t>, PendingRequest*> rising;
  };

  static void visit(VisitedQueue& visited) {
    ++visited.visits;
    while (!visited.rising.empty() && visited.rising.begin()->first.first <= visited.visits) {
      visited.ready.insert(visited.rising.begin()->second);
      visited.rising.erase(visited.rising.begin());
    }
  }

  std::int64_t quantum_;
  AggregationWait waits_;
  std::unordered_map<std::uint64_t, VisitedQueue> visited_;  // by number of the queue
  std::list<VisitedQueue*> turns_;                           // the next one first
};

}  // namespace

std::unique_ptr<Algorithm> make_mlf(const SchedulerSettings& settings) {
  return std::make_unique<MultilevelFeedback>(settings);
}

}  // namespace hocket::request_scheduler
