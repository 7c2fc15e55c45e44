// A request that is not done yet, and the queue of eligible requests that it may be merged with. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "request_scheduler/request.hpp"

namespace hocket::request_scheduler {

struct RequestQueue;
class AccessOrder;

// A request between `add` and `done`. It is eligible if no older request that it depends on is unfinished.
struct PendingRequest {
  enum class State { blocked, eligible, under_way };

  IoRequest request;
  std::int64_t at = 0;         // lowest offset; 0 if unknown
  std::int64_t end = 0;        // highest offset; the largest number if unknown
  std::uint64_t sequence = 0;  // rises in the order of `add`
  State state = State::blocked;
  bool dropped = false;                     // its caller does not want it any more, but younger requests wait for it
  RequestQueue* queue = nullptr;            // while eligible
  AccessOrder* file = nullptr;              // order of the accesses to its file; an offer has none
  std::size_t blockers = 0;                 // unfinished requests that this one waits for
  std::vector<PendingRequest*> dependents;  // requests that wait for this one
  std::uint64_t mark = 0;                   // free for the algorithm

  std::int64_t bytes() const { return request.bytes; }
  Duration waited(Time now) const { return now > request.arrival ? now - request.arrival : Duration{}; }
};

struct OldestFirst {
  bool operator()(const PendingRequest* a, const PendingRequest* b) const { return a->sequence < b->sequence; }
};
struct LowestOffsetFirst {
  bool operator()(const PendingRequest* a, const PendingRequest* b) const {
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
  }
};
using ByAge = std::set<PendingRequest*, OldestFirst>;
using ByOffset = std::set<PendingRequest*, LowestOffsetFirst>;

// Requests with equal keys may be merged, unless they have an `order`.
struct QueueKey {
  std::uint64_t file = 0;
  std::uint64_t order = 0;
  std::uint32_t flags = 0;
  bool writes = false;
  bool operator==(const QueueKey&) const = default;
};

struct QueueKeyHash {
  std::size_t operator()(const QueueKey& key) const {
    const std::uint64_t mixed = key.file * 0x9e3779b97f4a7c15U + key.order * 0xbf58476d1ce4e5b9U + key.flags;
    return static_cast<std::size_t>((mixed ^ mixed >> 29U) * 2 + (key.writes ? 1 : 0));
  }
};

// The eligible requests of one file, direction, and flags. A request with an `order` is alone in its queue, because the
// next one of that order is blocked. An empty queue ends.
struct RequestQueue {
  QueueKey key;
  std::uint64_t number = 0;  // unique; rises in the order of creation
  ByOffset requests;
  std::int64_t bytes = 0;
};

}  // namespace hocket::request_scheduler
