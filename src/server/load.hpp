// What a server has done and what it holds, as its loop and its I/O threads count it and its control side reads it.
//
// Thread-safe: each number by itself; two of them need not be of the same moment. Relaxed order is enough.
#pragma once

#include <atomic>
#include <cstdint>

namespace hocket::server {

struct Load {
  // Counted up since the start, never reset. What is refused or fails is counted like what is done.
  std::atomic<std::int64_t> operations = 0;  // reads and writes of clients that were carried out on the file
  std::atomic<std::int64_t> bytes = 0;       // of those
  // Time that I/O threads spent on those, injected delays included, time in the queue not. Requests that were merged
  // into one access share its time: their servicing is not counted twice.
  std::atomic<std::int64_t> service_ns = 0;

  // As it is now.
  std::atomic<std::int64_t> queue = 0;       // reads and writes taken in and not carried out yet
  std::atomic<std::int64_t> held_bytes = 0;  // of data in buffers
  // When the access began that has been under way longest (CLOCK_MONOTONIC); 0: none is. Tells a server that hangs from
  // one that has nothing to do.
  std::atomic<std::int64_t> oldest_start_ns = 0;
};

}  // namespace hocket::server
