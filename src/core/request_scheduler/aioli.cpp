// aIOLi (Lebre, Huard, Denneulin, Sowa: I/O Scheduling Service for Multi-Application Clusters, CLUSTER 2006; AGIOS,
// aIOLi). Queues of one file and direction are ordered by offset.
//
// - Each request begins with a quantum, which doubles at each choice. The first request of a queue is ready when its
//   quantum covers its bytes. Of the queues whose first request is ready, the one whose is oldest gets a turn.
// - In a turn the queue dispatches requests by offset up to a quantum of its own, in bytes. The next one depends on how
//   much was used: it doubles, grows by half, stays, or halves.
// - A queue may wait for better batches (aggregation_wait.hpp).
//
// Decided here, besides what mlf.cpp says of queues and sizes: a queue begins with the quantum of the settings, where
// AGIOS begins with one request. If no request is ready, the next choices that only raise quanta are skipped.
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/saturating.hpp"
#include "request_scheduler/aggregation_wait.hpp"
#include "request_scheduler/algorithm.hpp"

namespace hocket::request_scheduler {
namespace {

class Aioli final : public Algorithm {
 public:
  explicit Aioli(const SchedulerSettings& settings)
      : quantum_(settings.aioli_quantum), most_quantum_(settings.most_bytes), waits_(settings.aggregation_wait) {}

  void added(PendingRequest& request) override {
    request.mark = round_ + 1 + doublings(request.bytes(), quantum_);
    PlacedQueue& placed = placed_[request.queue->number];
    placed.queue = request.queue;
    const bool rests = placed.place == Place::resting && !waits_.ends_by(request);
    if (!rests) put(placed, Place::rising);
  }

  void removed(PendingRequest& request, Departure) override {
    const auto found = placed_.find(request.queue->number);
    PlacedQueue& placed = found->second;
    if (!request.queue->requests.empty()) {
      if (placed.place != Place::resting) put(placed, Place::rising);
      return;
    }
    leave(placed);
    if (turn_.queue == placed.queue) turn_.queue = nullptr;
    placed_.erase(found);
  }

  ScheduleChoice choose(const ByAge&, Time now) override {
    if (turn_.queue != nullptr) {
      PendingRequest& next = **turn_.queue->requests.begin();
      const std::int64_t left = turn_.quantum - turn_.used;
      if (left > 0 && next.bytes() <= left) return chosen(next, left);
    }
    end_turn();
    ++round_;
    wake(now);
    while (true) {
      if (ready_.empty() && !rising_.empty()) round_ = std::max(round_, rising_.begin()->key);
      promote();
      if (ready_.empty()) return {nullptr, {}, 0, 0, time_from_ns(static_cast<std::int64_t>(resting_.begin()->key))};
      PlacedQueue& placed = placed_.find(ready_.begin()->number)->second;
      PendingRequest& next = **placed.queue->requests.begin();
      if (const auto until = waits_.begins(*placed.queue, next, now)) {
        put(placed, Place::resting, static_cast<std::uint64_t>(to_ns(*until)));
        continue;
      }
      begin_turn(*placed.queue);
      return chosen(next, std::max(turn_.quantum, next.bytes()));
    }
  }

  void dispatched(const Dispatch& dispatch) override {
    if (dispatch.key == turn_.key) turn_.used = saturating_sum(turn_.used, dispatch.bytes);
    waits_.dispatched(dispatch);
  }

 private:
  // The set that contains a queue: its first request is not ready yet (sorted by round), is ready (by age), or the
  // queue waits (by time).
  enum class Place { none, rising, ready, resting };
  struct QueueEntry {
    std::uint64_t key = 0;     // round, sequence number, or nanoseconds
    std::uint64_t number = 0;  // of the queue
    bool operator<(const QueueEntry& other) const { return std::tie(key, number) < std::tie(other.key, other.number); }
  };
  struct PlacedQueue {
    const RequestQueue* queue = nullptr;
    Place place = Place::none;
    std::uint64_t key = 0;
  };
  struct Turn {
    const RequestQueue* queue = nullptr;  // none: over
    QueueKey key;
    std::int64_t quantum = 0;  // 0: no turn to adjust
    std::int64_t used = 0;
  };

  std::set<QueueEntry>& entries(Place place) {
    return place == Place::rising ? rising_ : place == Place::ready ? ready_ : resting_;
  }
  void leave(PlacedQueue& placed) {
    if (placed.place != Place::none) entries(placed.place).erase({placed.key, placed.queue->number});
    placed.place = Place::none;
  }
  // A rising queue is put where its first request belongs.
  void put(PlacedQueue& placed, Place place, std::uint64_t key = 0) {
    leave(placed);
    if (place == Place::rising) {
      const PendingRequest& first = **placed.queue->requests.begin();
      place = first.mark <= round_ ? Place::ready : Place::rising;
      key = place == Place::ready ? first.sequence : first.mark;
    }
    placed.place = place;
    placed.key = key;
    entries(place).insert({key, placed.queue->number});
  }
  void promote() {
    while (!rising_.empty() && rising_.begin()->key <= round_) {
      put(placed_.find(rising_.begin()->number)->second, Place::rising);
    }
  }
  void wake(Time now) {
    while (!resting_.empty() && resting_.begin()->key <= static_cast<std::uint64_t>(to_ns(now))) {
      put(placed_.find(resting_.begin()->number)->second, Place::rising);
    }
  }

  void begin_turn(const RequestQueue& queue) {
    QueueHistory& history = waits_.of(queue.key);
    turn_ = {&queue, queue.key, history.quantum > 0 ? history.quantum : quantum_, 0};
  }
  // Adjusts the quantum of the queue's next turn to what this one used.
  void end_turn() {
    if (turn_.quantum == 0) return;
    const double used = static_cast<double>(turn_.used) / static_cast<double>(turn_.quantum);
    std::int64_t next = turn_.quantum / 2;
    if (used >= 1.75) {
      next = saturating_product(turn_.quantum, 2);
    } else if (used >= 1.25) {
      next = saturating_sum(turn_.quantum, turn_.quantum / 2);
    } else if (used >= 0.75) {
      next = turn_.quantum;
    }
    waits_.of(turn_.key).quantum = next <= 0 ? quantum_ : std::min(next, most_quantum_);
    turn_ = {};
  }
  static ScheduleChoice chosen(PendingRequest& request, std::int64_t most_bytes) {
    ScheduleChoice choice{&request, Merging::touching};
    choice.most_bytes = most_bytes;
    return choice;
  }

  std::int64_t quantum_;
  std::int64_t most_quantum_;
  AggregationWait waits_;
  std::uint64_t round_ = 0;
  Turn turn_;
  std::unordered_map<std::uint64_t, PlacedQueue> placed_;  // by number of the queue
  std::set<QueueEntry> rising_;
  std::set<QueueEntry> ready_;
  std::set<QueueEntry> resting_;
};

}  // namespace

std::unique_ptr<Algorithm> make_aioli(const SchedulerSettings& settings) { return std::make_unique<Aioli>(settings); }

}  // namespace hocket::request_scheduler
