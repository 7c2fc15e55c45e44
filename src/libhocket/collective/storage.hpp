// Opens, reads, writes and locks the file of a collective access for this process, with POSIX calls. Also holds the
// thread that performs these calls while the main thread exchanges messages. Used by exchange.hpp and by file.hpp.
// The code here calls no MPI.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "collective/coverage.hpp"

namespace hocket::runtime::collective {

// The file descriptor through which this process accesses the storage; closed by the destructor. Functions that return
// int return an errno value, or 0 for success. Const member functions may be called by several threads at once.
class Storage {
 public:
  Storage() = default;
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Opens an existing regular file. ENOTSUP: the path is no regular file, or it is on NFS, whose clients see each
  // other's bytes late; hocket needs a file system that shows all processes of the job the same bytes at once. Opens
  // for reading too where `writes` is set and permissions allow it, because write_covered() may have to read. Called
  // at most once.
  int open(const char* path, bool reads, bool writes);

  // Transfers all bytes, starting at `offset` in the file; continues after short transfers and signals. A file that
  // ends before the last byte gives EIO, because the caller asks only for bytes that existed when it looked.
  int read(std::span<std::byte> bytes, std::int64_t offset) const;
  int write(std::span<const std::byte> bytes, std::int64_t offset) const;
  // Writes the bytes that `coverage` marks, and no others, from a buffer whose first byte belongs at `span.first`. If
  // they form many short runs, the function locks the span, reads it, changes it and writes it back. All hocket and
  // ROMIO processes that do the same respect this lock; a process that writes into the holes without a lock may lose
  // its bytes. `scratch` must be at least as long as the span.
  int write_covered(const std::byte* buffer, layout::Extent span, const Coverage& coverage, std::byte* scratch) const;

  // Takes an advisory lock of the open file on the extent, exclusive if `writes`, else shared; blocks until it is
  // granted. hocket and ROMIO respect these locks. Returns 0 also where the file system supports no locks.
  int lock(layout::Extent span, bool writes) const;
  int unlock(layout::Extent span) const;

  int descriptor() const { return fd_; }  // -1: not open
  std::int64_t size() const;              // bytes; 0 if fstat fails
  // Flushes the file to the storage with fsync.
  int sync() const;

 private:
  // Reads up to `count` bytes and stops early at the end of the file; `got` receives their number.
  int read_some(std::byte* bytes, std::int64_t count, std::int64_t offset, std::int64_t& got) const;
  int read_modify_write(const std::byte* buffer, layout::Extent span, const Coverage& coverage,
                        std::byte* scratch) const;
  int set_lock(layout::Extent span, short kind) const;

  int fd_ = -1;
  bool readable_ = false;
};

// Runs jobs on a thread of its own, so that blocking file accesses do not stop this rank from passing on messages. Jobs
// must not call MPI. The thread starts with the first job; the destructor runs all queued jobs and joins the thread.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues the job; jobs run one after the other, in the order of the calls. Runs the job in the calling thread if no
  // thread can be started.
  void submit(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;  // guards jobs_ and ends_
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace hocket::runtime::collective
