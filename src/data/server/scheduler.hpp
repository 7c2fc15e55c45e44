// Decides in which order requests are carried out, and which of them together. Pure.
//
// Requests that wait for the same file become one batch, sorted by offset; neighbours become one access. If two
// requests overlap and at least one writes, the scheduler carries out the older one first. The younger one waits
// until that is done, and so does any request that conflicts with the younger one. All other requests may be
// reordered. Several batches of a file may be under way at a time, because no two of them conflict. Files are served
// round robin.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "base/function_ref.hpp"
#include "transport/frame.hpp"

namespace hocket::server {

using transport::FileRun;

// A read or write that waits for its file.
struct FileRequest {
  std::uint64_t ticket = 0;  // the engine's number of the request
  std::uint64_t file = 0;
  bool writes = false;
  std::vector<FileRun> runs;      // at least one; rising and disjoint; the data lie one behind the other
  std::uint64_t application = 0;  // whose it is; any number
};

// A batch that could begin now, of one application in one file.
struct BatchProspect {
  std::uint64_t file = 0;
  std::uint64_t application = 0;
  std::uint64_t ticket = 0;  // of its first request
  bool writes = false;
  std::int64_t at = 0;          // lowest offset
  std::int64_t bytes = 0;       // of its requests
  std::int64_t most_bytes = 0;  // that it might have had
};

// A contiguous chunk of one request: the same bytes in the file and in the request's data.
struct RequestChunk {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::uint32_t request = 0;  // index in the batch's `tickets`
  std::int64_t data = 0;      // offset in the request's data
  std::int64_t end() const { return at + length; }
  bool operator==(const RequestChunk&) const = default;
};

// The extent of one access to the file. It covers `count` chunks from index `first` on.
struct BatchExtent {
  std::int64_t at = 0;
  std::int64_t end = 0;
  std::size_t first = 0;  // index of its first chunk
  std::size_t count = 0;
  bool seamless = true;  // its chunks touch without gap or overlap
};

// Requests of one file and one direction that are carried out together.
struct Batch {
  std::uint64_t number = 0;
  std::uint64_t file = 0;
  bool writes = false;
  std::vector<std::uint64_t> tickets;  // of its requests
  std::vector<RequestChunk> chunks;    // sorted by offset
  std::vector<BatchExtent> extents;    // sorted by offset, disjoint
};

// Queue of requests of all files. Not thread-safe; the caller reports what has been carried out.
class Scheduler {
 public:
  // Bounds of a batch.
  struct SchedulerSettings {
    bool merges = true;                     // false: each request is a batch of its own
    std::int64_t most_bytes = 16 << 20;     // bytes of a batch of several requests
    std::int64_t most_read_gap = 16 << 10;  // unrequested bytes between two reads that are read as well, at most
  };
  explicit Scheduler(SchedulerSettings settings) : settings_(settings) {}

  // Appends a request. Conflicting requests are carried out in the order of these calls.
  void add(FileRequest request);
  // Returns a batch that may run beside the batches under way; nothing if there is none. Files for which `may_start` is
  // false are left out. A batch costs O(n log n) for
  // the n runs of the requests looked at, plus the runs that overlap each other.
  std::optional<Batch> next(FunctionRef<bool(std::uint64_t file)> may_start = [](std::uint64_t) { return true; });
  // Returns the batches of at most `most_bytes`, or one request, that could begin now, at most one for each application
  // in each file. Applications are left out if `is_offered` is true, and files if `may_start` is false, or if nothing
  // has changed since they were looked at: `look_again` undoes that.
  std::vector<BatchProspect> prospects(
      std::int64_t most_bytes, FunctionRef<bool(std::uint64_t file)> may_start,
      FunctionRef<bool(std::uint64_t file, std::uint64_t application)> is_offered = [](std::uint64_t, std::uint64_t) {
        return false;
      });
  void look_again(std::uint64_t file);
  // Returns the batch of a prospect, or what has become of it since. Nothing, if nothing has.
  std::optional<Batch> next_of(const BatchProspect& prospect);
  // Returns a batch of a file, as `next` does.
  std::optional<Batch> next_of(std::uint64_t file);
  // True if a request of the application waits in the file.
  bool waits(std::uint64_t file, std::uint64_t application) const;

  // Notes that the batch has been carried out, so that requests which conflict with it may run.
  void done(const Batch& batch);
  // Removes the waiting requests for which `which` is true, and returns their tickets. Batches under way stay.
  std::vector<std::uint64_t> drop_if(const std::function<bool(std::uint64_t ticket)>& which);

  // Returns the number of requests that no batch contains yet.
  std::size_t waiting() const { return waiting_; }

 private:
  // Extents of a batch that has been handed out and not reported done.
  struct BatchUnderWay {
    std::uint64_t batch;
    bool writes;
    std::vector<FileRun> runs;
  };
  struct FileQueue {
    std::deque<FileRequest> waiting;
    std::map<std::uint64_t, std::size_t> waiting_of;  // how many of them each application has; at least one
    std::vector<BatchUnderWay> under_way;
    bool has_changed = true;  // since `prospects` has looked at it
  };
  // Whose requests may be in a batch; nothing: everybody's. Those of the first `most_looked_at` bytes are considered,
  // and a batch of several has at most `most_bytes`.
  struct BatchChoice {
    std::optional<std::uint64_t> application;
    std::int64_t most_looked_at;
    std::int64_t most_bytes;
    std::int64_t most_of_first;  // bytes of the first request, which may be larger than the others together
  };
  BatchChoice anything() const {
    return {std::nullopt, settings_.most_bytes, settings_.most_bytes, std::numeric_limits<std::int64_t>::max()};
  }

  static void forget_one(FileQueue& file, std::uint64_t application);
  std::size_t candidates(const FileQueue& file, const BatchChoice& choice) const;
  static std::vector<bool> blocked(const FileQueue& file, std::size_t candidates);
  std::optional<Batch> take_from(std::uint64_t number, FileQueue& file, const BatchChoice& choice);
  void add_prospects(std::uint64_t number, const FileQueue& file, std::int64_t most_bytes,
                     std::vector<BatchProspect>& found) const;
  void join(Batch& batch) const;

  SchedulerSettings settings_;
  std::map<std::uint64_t, FileQueue> files_;
  std::uint64_t last_file_ = 0;
  std::uint64_t last_batch_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace hocket::server
