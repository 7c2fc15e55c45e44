// What a server does with requests, without sockets: holds those of collective operations, merges, has them carried
// out, and gives the answers. One thread, but for the I/O threads inside.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "server/buffer_pool.hpp"
#include "server/files.hpp"
#include "server/holding.hpp"
#include "server/injection.hpp"
#include "server/load.hpp"
#include "server/scheduler.hpp"
#include "server/storage.hpp"
#include "server/workers.hpp"
#include "transport/staging.hpp"

namespace hocket::server {

using SessionId = std::uint64_t;

// Who asked, and is to be answered.
struct Asker {
  SessionId session = 0;
  std::uint64_t request = 0;
};

struct Answer {
  Asker to;
  int error = 0;
  std::int64_t bytes = 0;
  std::shared_ptr<Buffer> data;  // of a read that is not in shared memory: the first `bytes` of it
};

// A read or write.
struct Task {
  Asker asker;
  FilePtr file;
  bool writes = false;
  bool write_behind = false;  // is answered at once
  std::uint64_t operation = 0;
  std::vector<FileRun> runs;
  std::int64_t bytes = 0;
  // Where the data are: one of the two.
  Buffer buffer;
  std::shared_ptr<transport::Segment> segment;
  std::byte* shared = nullptr;

  std::byte* data() const { return segment ? shared : buffer.bytes().data(); }
};

class Engine {
 public:
  struct Settings {
    std::int64_t buffer_bytes = 64 << 20;
    int threads = 2;
    bool merges = true;
    Injection injection{};
  };
  // `load` must outlive it. `answer` is called whenever something has been done; `log` for what nobody else is told.
  Engine(const Settings& settings, Files files, Load& load, std::function<void(Answer)> answer,
         std::function<void(const std::string&)> log);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Memory for data; none: there is no room now, but some will be made.
  Buffer take(std::int64_t bytes);
  // The same for a read's data, which may have half of the memory: so writes can always go on.
  Buffer take_for_read(std::int64_t bytes);
  // Whether one more request may come.
  bool has_room() const { return runs_ < most_runs; }

  Files& files() { return files_; }
  // What comes from now on is younger than this.
  std::uint64_t now_ticket() const { return last_ticket_; }

  void submit(Task task, Time now);
  void end(const FilePtr& file, std::uint64_t operation, SessionId session, int participants, Time now);
  // After all that was submitted of the file before; `since`: when the asker opened it. A close gives its handle back.
  void sync(Asker asker, const FilePtr& file, std::uint64_t since);
  void close(Asker asker, const FilePtr& file, std::uint64_t since);
  // The session is no more: what it was not told to be done is dropped. Its handles are the caller's to give back;
  // `advance` begins what waited for it.
  void gone(SessionId session);

  // Holds nothing back any more.
  void release_all();
  // Releases what has been held for long enough, and keeps the I/O threads busy.
  void advance(Time now);
  // When `advance` is to be called at the latest.
  std::optional<Time> next_deadline() const { return holding_.next_expiry(); }
  Workers& workers() { return workers_; }
  bool idle() const { return tasks_.empty() && barriers_.empty() && workers_.busy() == 0; }

  // Brings the load up to date with the memory in use, which buffers give back by themselves.
  void count_held();
  // "key value" lines.
  std::string state() const;

 private:
  // Of requests that are not carried out yet: each is remembered until then.
  static constexpr std::size_t most_runs = 1 << 20;

  struct Held {  // a task on its way
    Task task;
    std::uint64_t ticket = 0;
    std::size_t runs = 0;
    bool acknowledged = false;
    bool delayed = false;
  };
  struct Barrier {
    Asker asker;
    FilePtr file;
    std::uint64_t ticket = 0;
    std::uint64_t since = 0;
    bool syncs = false;
  };

  bool injects(const Task& task);
  void release(const Holding::Tickets& tickets);
  void schedule(std::uint64_t ticket);
  void dispatch();
  void start(Batch batch);
  void finish(const Batch& batch, const std::vector<Outcome>& outcomes, Duration took, Time started);
  void settle(std::unique_ptr<Held> held, Outcome outcome);
  void pass_barriers(const FilePtr& file);
  void pass(const Barrier& barrier);
  std::shared_ptr<Buffer> reply_of(Buffer buffer);

  Settings settings_;
  Load& load_;
  std::function<void(Answer)> answer_;
  std::function<void(const std::string&)> log_;
  BufferPool pool_;           // outlives all buffers below
  std::int64_t reading_ = 0;  // bytes of reads in buffers
  Files files_;
  Holding holding_;
  Scheduler scheduler_;
  std::uint64_t last_ticket_ = 0;
  std::int64_t operations_ = 0;  // for the injection: a collective one counts once
  std::int64_t batches_ = 0;
  std::size_t runs_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Held>> tasks_;
  std::vector<Barrier> barriers_;
  std::multiset<Time> started_;  // of the batches under way
  std::size_t under_way_ = 0;
  Workers workers_;  // ends first
};

}  // namespace hocket::server
