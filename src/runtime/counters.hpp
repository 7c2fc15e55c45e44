// The running sums of one process: what it did, how much, how long.
//
// Thread-safe: threads add at once, and a reader sees each figure as it was at some moment.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::runtime {

class Counter {
 public:
  void add(std::int64_t value) { value_.fetch_add(value, std::memory_order_relaxed); }
  // As `add`, without the locked instruction: where no other thread can be adding.
  void add_alone(std::int64_t value) { value_.store(get() + value, std::memory_order_relaxed); }
  void add(Duration duration) { add(duration.count()); }
  std::int64_t get() const { return value_.load(std::memory_order_relaxed); }
  Duration duration() const { return Duration{get()}; }

 private:
  std::atomic<std::int64_t> value_ = 0;
};

struct Activity {
  Counter calls;
  Counter bytes;
  Counter time;  // ns

  // One call. `shared`: other threads may be adding.
  [[gnu::always_inline]] void add(std::int64_t moved, Duration took, bool shared) {
    if (!shared) {
      calls.add_alone(1);
      bytes.add_alone(moved);
      time.add_alone(took.count());
      return;
    }
    calls.add(1);
    bytes.add(moved);
    time.add(took);
  }
};

struct Counters {
  Activity read;   // MPI-IO data access
  Activity write;  // the same; MPI_File_sync too
  Activity comm;
  Activity posix_read;   // the program's own, by whichever of its threads
  Activity posix_write;  // the same; fsync and fdatasync too
  Counter file_time;     // ns in MPI_File_open, _close, _set_size and the like: I/O, but no data access
  Counter wait_time;     // ns waited for grants

  std::int64_t io_calls() const {
    return read.calls.get() + write.calls.get() + posix_read.calls.get() + posix_write.calls.get();
  }
  std::int64_t bytes_read() const { return read.bytes.get() + posix_read.bytes.get(); }
  std::int64_t bytes_written() const { return write.bytes.get() + posix_write.bytes.get(); }
  Duration io() const {
    return read.time.duration() + write.time.duration() + posix_read.time.duration() + posix_write.time.duration() +
           file_time.duration();
  }
};

}  // namespace hocket::runtime
