// Settings of the request schedulers. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::request_scheduler {

// Quanta, windows, and waits have the defaults of AGIOS and IOFSL.
struct SchedulerSettings {
  // Bounds of a batch of several requests, which has at most 65,536 chunks besides. A request above them is carried out
  // alone.
  std::int64_t most_bytes = 16 << 20;
  std::size_t most_requests = 1024;
  std::int64_t most_read_gap = 16 << 10;  // unrequested bytes between two reads that are read as well, at most
  // A request that has waited this long has priority in one batch of `overdue_period`, whatever the algorithm.
  Duration most_wait = std::chrono::seconds{5};

  Duration aggregation_wait = std::chrono::microseconds{900};  // aioli, mlf: how long a queue waits for neighbours
  std::int64_t aioli_quantum = 64 << 10;                       // bytes
  std::int64_t mlf_quantum = 8 << 10;                          // bytes
  std::size_t hbrr_quantum = 8;                                // requests
  Duration twins_window = std::chrono::milliseconds{2};
  // Data servers of the file system; 0: those that requests name (IoRequest::data_server).
  int twins_servers = 0;
  std::int64_t twins_stripe = 1 << 20;  // bytes of a file on one of `twins_servers`
  int twins_first = 0;                  // data server of the window at time 0; I/O nodes may differ
  std::int64_t request_cost = 4 << 10;  // wfq and the token schedulers: bytes that a request costs besides its own
  std::uint64_t seed = 1;               // of the token schedulers
};

// The oldest request gets at least one batch of this many once it is overdue.
inline constexpr std::size_t overdue_period = 16;
// Bound on the data servers of a file system: each has a queue.
inline constexpr int most_data_servers = 1 << 16;

}  // namespace hocket::request_scheduler
