// Shows that a thread which waits for hocketd is alive, and not blocked by a thread that waits for it
// (process/deputy.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::runtime {

// The counter of the calling thread, if others watch this thread. Each wait in this room calls `beat` at least once in
// each `between_beats`.
inline constinit thread_local std::atomic<std::uint64_t>* own_heartbeat = nullptr;
constexpr Duration between_beats = std::chrono::milliseconds{200};

inline void beat() {
  if (own_heartbeat) own_heartbeat->fetch_add(1, std::memory_order_relaxed);
}

}  // namespace hocket::runtime
