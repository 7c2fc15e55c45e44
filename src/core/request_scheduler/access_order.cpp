#include "request_scheduler/access_order.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace hocket::request_scheduler {
namespace {

// Adds an edge unless the last one is the same.
void wait_for(PendingRequest& younger, PendingRequest* older) {
  if (older == nullptr || older == &younger) return;
  if (!older->dependents.empty() && older->dependents.back() == &younger) return;
  older->dependents.push_back(&younger);
  ++younger.blockers;
}

// Calls the function for each extent of the request that has bytes.
template <class Function>
void for_each_extent(const PendingRequest& request, Function function) {
  if (request.request.extents.empty()) function(FileExtent{0, std::numeric_limits<std::int64_t>::max()});
  for (const FileExtent& extent : request.request.extents) {
    if (extent.length > 0) function(extent);
  }
}

}  // namespace

void AccessOrder::add(PendingRequest& request) {
  ++unfinished_;
  for_each_extent(request, [&](FileExtent extent) {
    if (request.request.writes) {
      write(request, extent);
    } else {
      read(request, extent);
    }
  });
  if (request.request.order == 0) return;
  PendingRequest*& last = last_of_order_[request.request.order];
  wait_for(request, last);
  last = &request;
}

void AccessOrder::remove(PendingRequest& request) {
  --unfinished_;
  for_each_extent(request, [&](FileExtent extent) { forget(request, extent); });
  if (request.request.order == 0) return;
  const auto last = last_of_order_.find(request.request.order);
  if (last != last_of_order_.end() && last->second == &request) last_of_order_.erase(last);
}

// Cuts the segment that contains the offset, so that none crosses it.
void AccessOrder::split(std::int64_t offset) {
  auto after = segments_.lower_bound(offset);
  if (after == segments_.begin()) return;
  Segment& before = std::prev(after)->second;
  if (before.end <= offset) return;
  segments_.emplace_hint(after, offset, before);
  before.end = offset;
}

// The request becomes the writer of one segment, which replaces what is there.
void AccessOrder::write(PendingRequest& request, FileExtent extent) {
  split(extent.at);
  split(extent.end());
  const auto first = segments_.lower_bound(extent.at);
  auto at = first;
  for (; at != segments_.end() && at->first < extent.end(); ++at) {
    if (at->second.readers.empty()) wait_for(request, at->second.writer);
    for (PendingRequest* reader : at->second.readers) wait_for(request, reader);
  }
  at = segments_.erase(first, at);
  segments_.emplace_hint(at, extent.at, Segment{extent.end(), &request, {}});
}

// The request becomes a reader of each segment of the extent, and of new segments in its holes.
void AccessOrder::read(PendingRequest& request, FileExtent extent) {
  split(extent.at);
  split(extent.end());
  std::int64_t offset = extent.at;
  auto at = segments_.lower_bound(extent.at);
  while (offset < extent.end()) {
    if (at == segments_.end() || at->first > offset) {
      const std::int64_t end = at == segments_.end() ? extent.end() : std::min(at->first, extent.end());
      at = segments_.emplace_hint(at, offset, Segment{end, nullptr, {}});
    }
    wait_for(request, at->second.writer);
    at->second.readers.push_back(&request);
    offset = at->second.end;
    ++at;
  }
}

// Removes the request from the segments that name it. FileSegments that name nobody end.
void AccessOrder::forget(const PendingRequest& request, FileExtent extent) {
  auto at = segments_.lower_bound(extent.at);
  while (at != segments_.end() && at->first < extent.end()) {
    Segment& segment = at->second;
    if (segment.writer == &request) segment.writer = nullptr;
    if (!request.request.writes) segment.readers.remove(const_cast<PendingRequest*>(&request));
    at = segment.writer == nullptr && segment.readers.empty() ? segments_.erase(at) : std::next(at);
  }
}

}  // namespace hocket::request_scheduler
