// The running sums of one process: calls, bytes and time of each kind of activity. They feed IO_PHASE and BYE.
//
// Thread-safe: threads add concurrently, and a reader sees each sum as it was at some moment. Sums that are read one
// after the other need not belong to the same moment.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::runtime {

// One running sum. Times are in nanoseconds.
class Counter {
 public:
  void add(std::int64_t value) { value_.fetch_add(value, std::memory_order_relaxed); }
  // Adds without the locked instruction. Precondition: no other thread can be adding.
  [[gnu::always_inline]] void add_alone(std::int64_t value) { value_.store(get() + value, std::memory_order_relaxed); }
  void add(Duration duration) { add(duration.count()); }
  std::int64_t get() const { return value_.load(std::memory_order_relaxed); }
  Duration duration() const { return Duration{get()}; }

 private:
  std::atomic<std::int64_t> value_ = 0;
};

struct CallCounters {
  Counter calls;
  Counter bytes;
  Counter time;  // ns

  // Adds one call. `shared` is true if other threads may be adding.
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
  CallCounters read;         // MPI-IO data access
  CallCounters write;        // MPI-IO data access and MPI_File_sync
  CallCounters comm;         // MPI communication
  CallCounters posix_read;   // POSIX reads of the program itself, by all of its threads
  CallCounters posix_write;  // POSIX writes of the program itself, and fsync and fdatasync
  Counter file_time;         // ns in MPI_File_open, _close, _set_size and the like: I/O, but no data access
  Counter wait_time;         // ns waited for grants

  std::int64_t io_calls() const {
    return read.calls.get() + write.calls.get() + posix_read.calls.get() + posix_write.calls.get();
  }
  std::int64_t bytes_read() const { return read.bytes.get() + posix_read.bytes.get(); }
  std::int64_t bytes_written() const { return write.bytes.get() + posix_write.bytes.get(); }
  std::int64_t bytes_moved() const { return bytes_read() + bytes_written(); }
  Duration io() const {
    return read.time.duration() + write.time.duration() + posix_read.time.duration() + posix_write.time.duration() +
           file_time.duration();
  }
};

}  // namespace hocket::runtime
