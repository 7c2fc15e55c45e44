// Tells which unfinished requests of a file a new one must wait for. Pure.
//
// The class divides the file into segments, and keeps of each the last writer and the readers since. A write waits for
// these readers, or else for the writer; a read waits for the writer. Older accesses need no edge, because those that
// are kept wait for them. So n writes of the same bytes have n - 1 edges, not n². Requests with the same `order` wait
// for each other besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "base/short_vector.hpp"
#include "request_scheduler/pending.hpp"

namespace hocket::request_scheduler {

class AccessOrder {
 public:
  // Adds edges from older requests to this one: its `blockers`, and their `dependents`. Costs O(s log n) for the s
  // segments that the request touches, plus the readers there.
  void add(PendingRequest& request);
  // Forgets the request. Precondition: it was added, and has no blockers.
  void remove(PendingRequest& request);
  bool empty() const { return unfinished_ == 0; }

 private:
  struct Segment {
    std::int64_t end = 0;
    PendingRequest* writer = nullptr;
    ShortVector<PendingRequest*> readers;
  };
  using FileSegments = std::map<std::int64_t, Segment>;  // by offset; disjoint

  void split(std::int64_t offset);
  void write(PendingRequest& request, FileExtent extent);
  void read(PendingRequest& request, FileExtent extent);
  void forget(const PendingRequest& request, FileExtent extent);

  FileSegments segments_;
  std::unordered_map<std::uint64_t, PendingRequest*> last_of_order_;  // the youngest request of each description
  std::size_t unfinished_ = 0;
};

}  // namespace hocket::request_scheduler
