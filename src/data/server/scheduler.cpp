#include "server/scheduler.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

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
  FileQueue& file = files_[request.file];
  file.has_changed = true;
  ++file.waiting_of[request.application];
  file.waiting.push_back(std::move(request));
  ++waiting_;
}

// Returns how many of the file's requests are considered: as many as one batch may have. Those of other applications
// are, too, because they may be in the way, but not their bytes.
std::size_t Scheduler::candidates(const FileQueue& file, const BatchChoice& choice) const {
  std::int64_t bytes = 0;
  std::size_t runs = 0;
  std::size_t count = 0;
  const std::size_t most = settings_.merges ? most_requests : most_looked_at;
  for (const FileRequest& request : file.waiting) {
    const bool is_other = choice.application && *choice.application != request.application;
    const bool had_some = bytes > 0;
    if (!is_other) bytes += bytes_of(request.runs);
    runs += request.runs.size();
    if (count > 0 && ((had_some && bytes > choice.most_looked_at) || runs > most_runs || count == most)) break;
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
std::optional<Batch> Scheduler::take_from(std::uint64_t number, FileQueue& file, const BatchChoice& choice) {
  const std::size_t count = candidates(file, choice);
  const std::vector<bool> waits = blocked(file, count);
  Batch batch;
  std::vector<FileRequest> left;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    FileRequest request = std::move(file.waiting.front());
    file.waiting.pop_front();
    const bool is_first = batch.tickets.empty();
    const std::int64_t more = bytes_of(request.runs);
    const bool goes_along =
        is_first ? more <= choice.most_of_first
                 : settings_.merges && request.writes == batch.writes && more <= choice.most_bytes - bytes;
    const bool is_chosen = !choice.application || *choice.application == request.application;
    if (waits[i] || !goes_along || !is_chosen) {
      left.push_back(std::move(request));
      continue;
    }
    batch.writes = request.writes;
    bytes += more;
    std::int64_t data = 0;
    for (const FileRun& run : request.runs) {
      batch.chunks.push_back({run.at, run.length, static_cast<std::uint32_t>(batch.tickets.size()), data});
      data += run.length;
    }
    batch.tickets.push_back(request.ticket);
    forget_one(file, request.application);
  }
  std::move(left.rbegin(), left.rend(), std::front_inserter(file.waiting));
  if (batch.tickets.empty()) return std::nullopt;
  batch.number = ++last_batch_;
  batch.file = number;
  join(batch);
  BatchUnderWay& under_way = file.under_way.emplace_back(BatchUnderWay{batch.number, batch.writes, {}});
  for (const BatchExtent& extent : batch.extents) under_way.runs.push_back({extent.at, extent.end - extent.at});
  waiting_ -= batch.tickets.size();
  file.has_changed = true;
  return batch;
}

std::optional<Batch> Scheduler::next_of(std::uint64_t file) {
  const auto found = files_.find(file);
  if (found == files_.end() || found->second.waiting.empty()) return std::nullopt;
  return take_from(file, found->second, anything());
}

std::optional<Batch> Scheduler::next_of(const BatchProspect& prospect) {
  const auto found = files_.find(prospect.file);
  if (found == files_.end() || found->second.waiting.empty()) return std::nullopt;
  return take_from(prospect.file, found->second,
                   {prospect.application, prospect.most_bytes, prospect.bytes, prospect.bytes});
}

// Adds the batches that `take_from` would return for each application in the file.
void Scheduler::add_prospects(std::uint64_t number, const FileQueue& file, std::int64_t most_bytes,
                              std::vector<BatchProspect>& found) const {
  constexpr std::int64_t any_bytes = std::numeric_limits<std::int64_t>::max();
  const std::size_t count = candidates(file, {std::nullopt, any_bytes, any_bytes, any_bytes});
  const std::vector<bool> waits = blocked(file, count);
  std::map<std::uint64_t, BatchProspect> prospects;  // by application
  std::map<std::uint64_t, std::int64_t> looked_at;   // bytes, likewise
  for (std::size_t i = 0; i < count; ++i) {
    const FileRequest& request = file.waiting[i];
    const std::int64_t bytes = bytes_of(request.runs), at = request.runs.front().at;
    std::int64_t& before = looked_at[request.application];
    const bool is_beyond = before > 0 && before + bytes > most_bytes;
    before += bytes;
    if (is_beyond) before = any_bytes / 2;  // the end of what is looked at
    if (waits[i] || is_beyond) continue;
    const auto [own, is_first] = prospects.try_emplace(
        request.application,
        BatchProspect{number, request.application, request.ticket, request.writes, at, bytes, most_bytes});
    if (is_first || !settings_.merges || request.writes != own->second.writes) continue;
    own->second.bytes += bytes;
    own->second.at = std::min(own->second.at, at);
  }
  for (const auto& [application, prospect] : prospects) found.push_back(prospect);
}

// A file is looked at only for somebody's sake: a server whose applications always have offers would sort their
// requests twice for each batch.
std::vector<BatchProspect> Scheduler::prospects(std::int64_t most_bytes, FunctionRef<bool(std::uint64_t)> may_start,
                                                FunctionRef<bool(std::uint64_t, std::uint64_t)> is_offered) {
  std::vector<BatchProspect> found;
  for (auto& [number, file] : files_) {
    const auto has_offer = [&, file_number = number](const auto& one) { return is_offered(file_number, one.first); };
    if (!file.has_changed || std::ranges::all_of(file.waiting_of, has_offer) || !may_start(number)) continue;
    file.has_changed = false;
    add_prospects(number, file, std::min(most_bytes, settings_.most_bytes), found);
  }
  std::erase_if(found, [&](const BatchProspect& one) { return is_offered(one.file, one.application); });
  return found;
}

void Scheduler::forget_one(FileQueue& file, std::uint64_t application) {
  const auto own = file.waiting_of.find(application);
  if (--own->second == 0) file.waiting_of.erase(own);
}

void Scheduler::look_again(std::uint64_t file) {
  if (const auto found = files_.find(file); found != files_.end()) found->second.has_changed = true;
}

bool Scheduler::waits(std::uint64_t file, std::uint64_t application) const {
  const auto found = files_.find(file);
  return found != files_.end() && found->second.waiting_of.contains(application);
}

std::optional<Batch> Scheduler::next(FunctionRef<bool(std::uint64_t)> may_start) {
  // The search starts behind the file of the previous batch, so that no file starves.
  auto file = files_.upper_bound(last_file_);
  for (std::size_t i = 0; i < files_.size(); ++i, ++file) {
    if (file == files_.end()) file = files_.begin();
    if (file->second.waiting.empty() || !may_start(file->first)) continue;
    if (auto batch = take_from(file->first, file->second, anything())) {
      last_file_ = file->first;
      return batch;
    }
  }
  return std::nullopt;
}

void Scheduler::done(const Batch& batch) {
  const auto file = files_.find(batch.file);
  if (file == files_.end()) return;
  file->second.has_changed = true;
  std::erase_if(file->second.under_way, [&](const BatchUnderWay& other) { return other.batch == batch.number; });
  if (file->second.under_way.empty() && file->second.waiting.empty()) files_.erase(file);
}

std::vector<std::uint64_t> Scheduler::drop_if(const std::function<bool(std::uint64_t)>& which) {
  std::vector<std::uint64_t> dropped;
  for (auto file = files_.begin(); file != files_.end();) {
    file->second.has_changed = true;
    std::erase_if(file->second.waiting, [&](const FileRequest& request) {
      const bool drop = which(request.ticket);
      if (!drop) return false;
      dropped.push_back(request.ticket);
      forget_one(file->second, request.application);
      return true;
    });
    const bool idle = file->second.waiting.empty() && file->second.under_way.empty();
    file = idle ? files_.erase(file) : std::next(file);
  }
  waiting_ -= dropped.size();
  return dropped;
}

}  // namespace hocket::server
