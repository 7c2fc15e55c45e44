#include "server/scheduler.hpp"

#include <algorithm>
#include <iterator>

namespace hocket::server {
namespace {

// Bound on the requests of one batch, which keeps the search for overlaps short.
constexpr std::size_t most_requests = 1024;
// Bound on the requests examined to find one that may run, where requests are not merged.
constexpr std::size_t most_looked_at = 16;
// Bound on the runs of one batch.
constexpr std::size_t most_runs = 64 << 10;

std::int64_t bytes_of(const std::vector<FileRun>& runs) {
  std::int64_t bytes = 0;
  for (const FileRun& run : runs) bytes += run.length;
  return bytes;
}

// A run of a waiting request, or of a batch under way.
struct Mark {
  std::int64_t at;
  std::int64_t end;
  std::size_t order;  // 0: under way; i + 1: candidate i
  bool writes;
};

}  // namespace

void Scheduler::add(FileRequest request) {
  files_[request.file].waiting.push_back(std::move(request));
  ++waiting_;
}

// Returns how many of the file's requests are considered: as many as one batch may have.
std::size_t Scheduler::candidates(const FileQueue& file) const {
  std::int64_t bytes = 0;
  std::size_t runs = 0;
  std::size_t count = 0;
  const std::size_t most = settings_.merges ? most_requests : most_looked_at;
  for (const FileRequest& request : file.waiting) {
    bytes += bytes_of(request.runs);
    runs += request.runs.size();
    if (count > 0 && (bytes > settings_.most_bytes || runs > most_runs || count == most)) break;
    ++count;
  }
  return count;
}

// Returns for each candidate if it must wait, because it conflicts with a batch under way or an earlier candidate.
// The runs are swept in order of their offsets; `open` holds the runs that contain the current offset.
std::vector<bool> Scheduler::blocked(const FileQueue& file, std::size_t candidates) {
  std::vector<Mark> marks;
  for (const BatchUnderWay& batch : file.under_way) {
    for (const FileRun& run : batch.runs) marks.push_back({run.at, run.end(), 0, batch.writes});
  }
  for (std::size_t i = 0; i < candidates; ++i) {
    for (const FileRun& run : file.waiting[i].runs) marks.push_back({run.at, run.end(), i + 1, file.waiting[i].writes});
  }
  std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.at < b.at; });
  std::vector<bool> blocked(candidates + 1);
  std::vector<Mark> open;  // runs that reach beyond the current offset
  for (const Mark& mark : marks) {
    std::erase_if(open, [&](const Mark& other) { return other.end <= mark.at; });
    for (const Mark& other : open) {
      if ((other.writes || mark.writes) && other.order != mark.order) blocked[std::max(other.order, mark.order)] = true;
    }
    open.push_back(mark);
  }
  blocked.erase(blocked.begin());
  return blocked;
}

// Sorts the chunks, and joins neighbours into extents. Reads also span small gaps, since one longer access is
// cheaper than two; writes never do, because nobody supplied the bytes in between.
void Scheduler::join(Batch& batch) const {
  std::stable_sort(batch.chunks.begin(), batch.chunks.end(),
                   [](const RequestChunk& a, const RequestChunk& b) { return a.at < b.at; });
  const std::int64_t gap = batch.writes ? 0 : settings_.most_read_gap;
  for (std::size_t i = 0; i < batch.chunks.size(); ++i) {
    const RequestChunk& chunk = batch.chunks[i];
    if (batch.extents.empty() || chunk.at > batch.extents.back().end + gap) {
      batch.extents.push_back({chunk.at, chunk.end(), i, 1, true});
      continue;
    }
    BatchExtent& extent = batch.extents.back();
    extent.seamless = extent.seamless && chunk.at == extent.end;
    extent.end = std::max(extent.end, chunk.end());
    ++extent.count;
  }
}

// Takes the requests of a file that may run together, and leaves the others in their order. The first one that is not
// blocked determines the direction of the batch.
std::optional<Batch> Scheduler::next_of(std::uint64_t number, FileQueue& file) {
  const std::size_t count = candidates(file);
  const std::vector<bool> waits = blocked(file, count);
  Batch batch;
  std::vector<FileRequest> left;
  for (std::size_t i = 0; i < count; ++i) {
    FileRequest request = std::move(file.waiting.front());
    file.waiting.pop_front();
    const bool is_first = batch.tickets.empty();
    const bool goes_along = is_first || (settings_.merges && request.writes == batch.writes);
    if (waits[i] || !goes_along) {
      left.push_back(std::move(request));
      continue;
    }
    batch.writes = request.writes;
    std::int64_t data = 0;
    for (const FileRun& run : request.runs) {
      batch.chunks.push_back({run.at, run.length, static_cast<std::uint32_t>(batch.tickets.size()), data});
      data += run.length;
    }
    batch.tickets.push_back(request.ticket);
  }
  std::move(left.rbegin(), left.rend(), std::front_inserter(file.waiting));
  if (batch.tickets.empty()) return std::nullopt;
  batch.number = ++last_batch_;
  batch.file = number;
  join(batch);
  BatchUnderWay& under_way = file.under_way.emplace_back(BatchUnderWay{batch.number, batch.writes, {}});
  for (const BatchExtent& extent : batch.extents) under_way.runs.push_back({extent.at, extent.end - extent.at});
  waiting_ -= batch.tickets.size();
  return batch;
}

std::optional<Batch> Scheduler::next(FunctionRef<bool(std::uint64_t)> may_start) {
  // The search starts behind the file of the previous batch, so that no file starves.
  auto file = files_.upper_bound(last_file_);
  for (std::size_t i = 0; i < files_.size(); ++i, ++file) {
    if (file == files_.end()) file = files_.begin();
    if (file->second.waiting.empty() || !may_start(file->first)) continue;
    if (auto batch = next_of(file->first, file->second)) {
      last_file_ = file->first;
      return batch;
    }
  }
  return std::nullopt;
}

void Scheduler::done(const Batch& batch) {
  const auto file = files_.find(batch.file);
  if (file == files_.end()) return;
  std::erase_if(file->second.under_way, [&](const BatchUnderWay& other) { return other.batch == batch.number; });
  if (file->second.under_way.empty() && file->second.waiting.empty()) files_.erase(file);
}

std::vector<std::uint64_t> Scheduler::drop_if(const std::function<bool(std::uint64_t)>& which) {
  std::vector<std::uint64_t> dropped;
  for (auto file = files_.begin(); file != files_.end();) {
    std::erase_if(file->second.waiting, [&](const FileRequest& request) {
      const bool drop = which(request.ticket);
      if (drop) dropped.push_back(request.ticket);
      return drop;
    });
    const bool idle = file->second.waiting.empty() && file->second.under_way.empty();
    file = idle ? files_.erase(file) : std::next(file);
  }
  waiting_ -= dropped.size();
  return dropped;
}

}  // namespace hocket::server
