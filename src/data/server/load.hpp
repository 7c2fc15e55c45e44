// Counters of a server: what it has done and what it holds. The loop and the I/O side update them; the control thread
// reads them for its reports to hocketd.
//
// Thread-safe for each counter by itself. Two counters need not be of the same moment, so relaxed order is enough.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::server {

// Longest time between two rounds of a server's loop.
inline constexpr Duration beat_every = std::chrono::milliseconds{500};

// Returns the shortest time between two reports of a server, if so many are in the map. All of them together send the
// leader at most 1,000 reports a second, until there are 500.
constexpr Duration report_interval(std::size_t servers) {
  constexpr Duration shortest = std::chrono::milliseconds{50};
  constexpr Duration longest = std::chrono::milliseconds{500};  // less than a heartbeat
  return std::clamp<Duration>(std::chrono::milliseconds{servers}, shortest, longest);
}

// The counters of one server.
struct LoadCounters {
  // Totals since the start, never reset. A request that the file system fails counts as an operation; one that is
  // refused before, or fails by injection, does not.
  std::atomic<std::int64_t> operations = 0;  // clients' reads and writes that I/O threads carried out
  std::atomic<std::int64_t> bytes = 0;       // read or written by those
  // Time that I/O threads spent on those, including injected delays but not the time in the queue. Requests that were
  // merged into one batch share its time: it is counted once.
  std::atomic<std::int64_t> service_ns = 0;

  // Current values.
  std::atomic<std::int64_t> queue = 0;       // reads and writes received and not carried out yet
  std::atomic<std::int64_t> held_bytes = 0;  // memory of data buffers, in whole blocks
  // Start of the oldest batch under way (CLOCK_MONOTONIC); 0 if there is none. It distinguishes a slow server from an
  // idle one.
  std::atomic<std::int64_t> oldest_start_ns = 0;

  // Rounds of the loop. It makes one at least every `beat_every`, whatever the I/O threads do, unless it hangs.
  std::atomic<std::int64_t> beats = 0;
};

}  // namespace hocket::server
