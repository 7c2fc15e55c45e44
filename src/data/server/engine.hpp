// Carries out the requests of all clients of a server, without sockets. The engine holds back requests of collective
// operations, merges neighbouring ones into batches, gives the batches to I/O threads, and produces the answers.
//
// Only the server's loop calls it. The I/O threads run inside `Workers` and share nothing else with the engine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "forward/storage_queue.hpp"
#include "server/buffer_pool.hpp"
#include "server/files.hpp"
#include "server/holding.hpp"
#include "server/injection.hpp"
#include "server/load.hpp"
#include "server/scheduler.hpp"
#include "server/storage.hpp"
#include "server/workers.hpp"
#include "transport/held_writes.hpp"
#include "transport/staging.hpp"

namespace hocket::server {

using SessionId = std::uint64_t;

// Names the request that an answer belongs to: a session and the client's own number of the request.
struct Asker {
  SessionId session = 0;
  std::uint64_t request = 0;
};

// Result of one request. `error` is a number of errno, 0 for success.
struct Answer {
  Asker to;
  int error = 0;
  std::int64_t bytes = 0;
  bool early = false;              // of a write that is not in the file yet
  bool elsewhere = false;          // of a task that was
  std::shared_ptr<Buffer> data{};  // data of a read that is not in shared memory; the first `bytes` are valid
};

// One read or write request with its data. The runs rise in the file and lie one behind the other in the data.
struct Task {
  Asker asker;
  FilePtr file;
  bool writes = false;
  bool elsewhere = false;       // the server map has another placement than the opening
  OpeningPtr behind;            // set if the write is answered as soon as the engine has its data
  std::uint64_t operation = 0;  // number of the collective operation; 0: independent
  std::vector<FileRun> runs;
  std::int64_t bytes = 0;
  forward::ForwardClients::CallOwner owner;
  std::uint64_t user = 0;  // whose process the client is
  // Exactly one of the two holds the data: `buffer`, or `shared` inside `segment`, the client's shared memory.
  Buffer buffer;
  std::shared_ptr<transport::SharedSegment> segment;
  std::byte* shared = nullptr;

  // Returns the first byte of the data.
  std::byte* data() const { return segment ? shared : buffer.bytes().data(); }
};

// Orders and executes requests on files. It owns the files, the buffer pool, the scheduler and the I/O threads.
class Engine {
 public:
  // Limits and switches of one server.
  struct EngineSettings {
    std::int64_t buffer_bytes = 64 << 20;  // capacity of the buffer pool
    int threads = 2;                       // largest number of batches under way; see `queue`
    bool merges = true;                    // false: each request is a batch of its own (benchmarks)
    Injection injection{};                 // delays and errors for tests
    // The table in which other processes see what is held; nullptr: none need to.
    transport::HeldWrites* held = nullptr;
    // Orders batches beside forwarded calls, if its scheduler is not "fifo", and counts them. Then `slots` batches may
    // be under way. It outlives the engine. nullptr: there are no others.
    forward::StorageQueue* queue = nullptr;
  };
  // Functions that the engine calls, possibly inside `submit`.
  struct EngineCalls {
    std::function<void(Answer)> answer;  // for each request that has ended
    // When all writes of an opening that were answered early have been carried out; `error` is one of those that its
    // client has not been told of.
    std::function<void(const FileOpening& opening, int error)> stored;
    std::function<void(const std::string&)> log;  // for errors that a client learns of later
  };
  // Starts the I/O threads. `load` must outlive the engine.
  Engine(const EngineSettings& settings, Files files, LoadCounters& load, EngineCalls calls);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Allocates memory for data. Returns an empty buffer if the pool is full; held requests are then released, so that
  // memory becomes free soon. Precondition: 0 < bytes <= most_payload.
  Buffer take(std::int64_t bytes);
  // Allocates memory for a read's data. All reads together get half of the pool at most, so that they do not starve
  // writes; one read is always admitted. The limit counts requested bytes, not whole blocks, until the client has
  // received them.
  Buffer take_for_read(std::int64_t bytes);
  // Sets memory aside for what is no data (BufferPool::reserve).
  Reservation reserve(std::int64_t bytes) { return pool_.reserve(bytes); }
  std::int64_t most_reserved() const { return pool_.most_reserved(); }
  // True if one more request can be admitted: the number of pending runs is bounded.
  bool has_room() const { return runs_ < most_runs; }
  // True if more than half of the memory is in use.
  bool is_memory_scarce() const { return pool_.in_use() > pool_.limit() / 2; }

  Files& files() { return files_; }

  // Takes over a request. It is held for merging if it belongs to a collective operation, else scheduled at once.
  // Requests of other operations on the same file that were held before are released first, which keeps the file's
  // order.
  void submit(Task task, Time now);
  // Notes that the session sends nothing more for the operation, in which `participants` clients take part.
  void end(const FilePtr& file, std::uint64_t operation, SessionId session, int participants, Time now);
  // Answers when everything submitted before for the file has been carried out, with an error of the file's write-back
  // that the opening has not been told. `sync` also calls fdatasync; `close` gives the handle back.
  void sync(Asker asker, const FilePtr& file, const OpeningPtr& opening);
  void close(Asker asker, const FilePtr& file, const OpeningPtr& opening);
  // Calls `stored` when everything submitted before for the file has been carried out; without fdatasync. It may call
  // at once.
  void store(const FilePtr& file, std::function<void()> stored);
  // Has everything that waits for a turn stored at once, because somebody waits.
  void hurry();
  // Has everything stored at once from now on.
  void take_no_turns();
  // Calls `stored` when everything submitted before for any file that clients open by path has been carried out.
  void store_all(const std::function<void()>& stored);
  // Removes a session that has disconnected. Its requests that are neither acknowledged nor under way are dropped.
  // The caller gives its handles back, and calls `advance` to start requests that were blocked by the dropped ones.
  void gone(SessionId session);
  // True if reads or writes of the session are under way, or acknowledged and not carried out yet.
  bool has_requests_of(SessionId session) const;

  // Releases all held requests, and starts as many batches as there are idle I/O threads.
  void release_all();
  // Releases requests whose holding time is over, and starts as many batches as there are idle I/O threads.
  void advance(Time now);
  // Returns the time by which `advance` must be called; nothing if no operation is remembered or waits for a turn.
  std::optional<Time> next_deadline() const;
  Workers& workers() { return workers_; }
  // Takes all offers to the queue back, or those of which no request is left.
  void take_back_offers(bool all);
  // True if no request, barrier or I/O job is pending.
  bool idle() const { return tasks_.empty() && barriers_.empty() && workers_.busy() == 0; }

  // Updates the load's `held_bytes`. Buffers return to the pool by themselves, so the counter is refreshed by the
  // loop.
  void count_held();
  // Returns the counters as lines of "key value".
  std::string state() const;

 private:
  // Bound on the runs of pending requests, plus one for each request: the engine keeps them in memory until they are
  // done.
  static constexpr std::size_t most_runs = 1 << 20;

  struct HeldTask {  // a task with its bookkeeping, until it is answered
    Task task;
    std::uint64_t ticket = 0;
    Time arrival{};
    std::size_t runs = 0;       // counted in `runs_`
    bool acknowledged = false;  // answered already: written behind
    bool delayed = false;       // an injected delay is added
  };
  struct BatchWork;
  // A call that waits until all requests of its file up to `ticket` have been carried out.
  struct Barrier {
    FilePtr file;
    std::uint64_t ticket = 0;
    std::function<void()> passed;
  };
  // A sync that waits for an fdatasync.
  struct PendingSync {
    Asker asker;
    FilePtr file;
    OpeningPtr opening;  // of the asker
  };

  bool injects(const Task& task);
  void release(const Holding::Tickets& tickets);
  void schedule(std::uint64_t ticket);
  void dispatch();
  void dispatch_as_they_come();
  void dispatch_in_order();
  bool orders() const { return settings_.queue != nullptr && settings_.queue->orders_batches(); }
  void offer(const BatchProspect& prospect);
  int data_server_at(const FilePtr& file, const BatchProspect& prospect);
  void begin_granted(std::uint64_t offer);
  void start_wanted();
  void start(Batch batch, std::uint64_t offer = 0);
  void count(const Batch& batch, Time started) const;
  void finish(const BatchWork& work, const std::vector<AccessOutcome>& outcomes, Duration took);
  void settle(std::unique_ptr<HeldTask> held, AccessOutcome outcome);
  void acknowledge_early(Task& task, std::uint64_t ticket);
  void end_behind(const Task& task, int error);
  void show_held(ServerFile& file);
  void begin_behind(ServerFile& file, const Task& task);
  void set_turn(const FilePtr& file, WriteBackTurnPtr turn);
  bool is_waited_for(const ServerFile& file) const;
  void pass_barriers(const FilePtr& file);
  void await_flush(const PendingSync& sync);
  void flush(std::vector<PendingSync> syncs);
  void end_flush(const std::vector<PendingSync>& syncs, int failed);
  std::shared_ptr<Buffer> reply_of(Buffer buffer);

  EngineSettings settings_;
  LoadCounters& load_;
  EngineCalls calls_;
  BufferPool pool_;           // outlives all buffers below
  std::int64_t reading_ = 0;  // bytes of reads that occupy buffers, until the client has them
  Files files_;
  Holding holding_;
  Scheduler scheduler_;
  std::uint64_t last_ticket_ = 0;
  std::int64_t operations_ = 0;  // for the injection; a collective operation counts once
  std::int64_t batches_ = 0;
  std::size_t runs_ = 0;  // of pending requests, see `most_runs`
  std::unordered_map<std::uint64_t, std::unique_ptr<HeldTask>> tasks_;
  std::vector<Barrier> barriers_;
  // The syncs that came while an fdatasync was under way, by number of the file. Only one runs at a time, because the
  // kernel reports an error to one fdatasync of a descriptor, and to no later or concurrent one.
  std::map<std::uint64_t, std::vector<PendingSync>> flushing_;
  std::multiset<Time> started_;  // start times of the batches under way
  std::size_t under_way_ = 0;
  std::map<std::uint64_t, FilePtr> taking_turns_;  // files with a turn, by their numbers
  std::map<std::uint64_t, FilePtr> held_;          // files of which other processes see that writes are held
  // Offers in the queue, by ticket, and the file and application of each.
  std::unordered_map<std::uint64_t, BatchProspect> offers_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> offered_;
  std::optional<Time> again_;  // when to ask the queue
  bool takes_turns_ = true;
  Workers workers_;  // destroyed first: its jobs refer to the members above
};

}  // namespace hocket::server
