// The file of a collective access, as this process reads and writes it; and the thread that does so meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "runtime/io/coverage.hpp"

namespace hocket::runtime::io {

// Errors are numbers of errno; 0: none. Thread-safe.
class Storage {
 public:
  Storage() = default;
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // A regular file that is there, of a file system that shows all processes of the job the same bytes at once.
  int open(const char* path, bool reads, bool writes);

  // All of the bytes. A file that ends before them is an EIO: what is asked for was there when it was asked.
  int read(std::span<std::byte> bytes, std::int64_t offset) const;
  int write(std::span<const std::byte> bytes, std::int64_t offset) const;
  // The bytes of `coverage` out of a buffer that begins at offset `span.first`, and no others. Where they are broken up
  // finely, the span is read, changed and written back under a lock on it, which all hocket and ROMIO processes respect
  // that do the same; who writes into the holes meanwhile without a lock may lose it. `scratch`: as long as the buffer.
  int write_covered(const std::byte* buffer, layout::Interval span, const Coverage& coverage, std::byte* scratch) const;

  // A lock of the open file on the interval, shared or to write: hocket and ROMIO respect it, who do the same. 0 too
  // where the file system has none. Waits.
  int lock(layout::Interval span, bool writes) const;
  int unlock(layout::Interval span) const;

  std::int64_t size() const;  // 0 where it cannot be told
  int sync() const;

 private:
  // Bytes until the end of the file.
  int read_some(std::byte* bytes, std::int64_t count, std::int64_t offset, std::int64_t& got) const;
  int read_modify_write(const std::byte* buffer, layout::Interval span, const Coverage& coverage,
                        std::byte* scratch) const;
  int set_lock(layout::Interval span, short kind) const;

  int fd_ = -1;
  bool readable_ = false;
};

// A thread for what would keep this one from passing on messages. It calls no MPI.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Begun in the order given; done here and now where no thread can be started.
  void submit(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace hocket::runtime::io
