#include "request_scheduler/merge.hpp"

#include <algorithm>
#include <iterator>

#include "base/saturating.hpp"

namespace hocket::request_scheduler {
namespace {

// Bound on the chunks of a batch of several requests.
constexpr std::size_t most_chunks = 64 << 10;

// The size of a batch so far, and its bounds.
struct BatchSize {
  std::int64_t bytes = 0;
  std::size_t requests = 0;
  std::size_t chunks = 0;
  std::int64_t most_bytes = 0;
  std::size_t most_requests = 0;

  // Adds a request if the bounds allow it.
  bool take(const PendingRequest& request) {
    const std::size_t more = request.request.extents.size();
    if (requests >= most_requests || request.bytes() > most_bytes - bytes || chunks + more > most_chunks) return false;
    bytes += request.bytes();
    chunks += more;
    ++requests;
    return true;
  }
};

std::int64_t gap_of(const PendingRequest& request, const SchedulerSettings& settings) {
  return request.request.writes ? 0 : settings.most_read_gap;
}

// Sorts the chunks, and joins neighbours into accesses. Reads also span small gaps, since one longer access is cheaper
// than two; writes never do, because nobody supplied the bytes in between.
void join_chunks(RequestBatch& batch, std::int64_t gap) {
  const auto by_offset = [](const BatchChunk& a, const BatchChunk& b) { return a.at < b.at; };
  if (!std::is_sorted(batch.chunks.begin(), batch.chunks.end(), by_offset)) {
    std::stable_sort(batch.chunks.begin(), batch.chunks.end(), by_offset);
  }
  for (std::size_t i = 0; i < batch.chunks.size(); ++i) {
    const BatchChunk& chunk = batch.chunks[i];
    if (batch.accesses.empty() || chunk.at > saturating_sum(batch.accesses.back().end, gap)) {
      batch.accesses.push_back({chunk.at, chunk.end(), i, 1, true});
      continue;
    }
    AccessRange& access = batch.accesses.back();
    access.seamless = access.seamless && chunk.at == access.end;
    access.end = std::max(access.end, chunk.end());
    ++access.count;
  }
}

}  // namespace

std::vector<PendingRequest*> joined(const ScheduleChoice& choice, const SchedulerSettings& settings) {
  PendingRequest& first = *choice.first;
  std::vector<PendingRequest*> requests{&first};
  const ByOffset& queue = first.queue->requests;
  if (choice.merging == Merging::none || queue.size() == 1 || first.request.is_offer) return requests;
  BatchSize size{first.bytes(), 1, first.request.extents.size(), std::min(settings.most_bytes, choice.most_bytes),
                 std::min(settings.most_requests, choice.most_requests)};
  const std::int64_t gap = gap_of(first, settings);
  const bool touching = choice.merging == Merging::touching;
  const auto chosen = queue.find(&first);
  std::int64_t end = first.end;
  for (auto at = std::next(chosen); at != queue.end(); ++at) {
    if ((touching && (*at)->at > saturating_sum(end, gap)) || !size.take(**at)) break;
    end = std::max(end, (*at)->end);
    requests.push_back(*at);
  }
  if (!touching) return requests;
  std::int64_t begin = first.at;
  for (auto at = chosen; at != queue.begin();) {
    --at;
    if (saturating_sum((*at)->end, gap) < begin || !size.take(**at)) break;
    begin = (*at)->at;
    requests.push_back(*at);
  }
  std::sort(requests.begin(), requests.end(), LowestOffsetFirst{});
  return requests;
}

RequestBatch batch_of(const std::vector<PendingRequest*>& requests, const SchedulerSettings& settings) {
  const IoRequest& first = requests.front()->request;
  RequestBatch batch;
  batch.file = first.file;
  batch.writes = first.writes;
  batch.flags = first.flags;
  batch.order = first.order;
  batch.tickets.reserve(requests.size());
  batch.chunks.reserve(requests.size());
  for (const PendingRequest* request : requests) {
    const auto index = static_cast<std::uint32_t>(batch.tickets.size());
    std::int64_t data = 0;
    for (const FileExtent& extent : request->request.extents) {
      batch.chunks.push_back({extent.at, extent.length, index, data});
      data += extent.length;
    }
    batch.tickets.push_back(request->request.ticket);
    batch.bytes += request->bytes();
  }
  if (batch.chunks.empty()) {
    batch.chunks.push_back({-1, first.bytes, 0, 0});
  } else {
    join_chunks(batch, gap_of(*requests.front(), settings));
  }
  return batch;
}

std::size_t touching_at_head(const RequestQueue& queue, std::size_t most) {
  std::size_t count = 0;
  std::int64_t end = 0;
  for (const PendingRequest* request : queue.requests) {
    if (count >= most || (count > 0 && request->at > end)) break;
    end = std::max(end, request->end);
    ++count;
  }
  return count;
}

}  // namespace hocket::request_scheduler
