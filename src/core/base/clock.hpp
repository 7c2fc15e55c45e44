// The clock of this node, for the shells (daemon, runtime, benchmarks). Pure folders must not include it, because
// they get the time with each event.
#pragma once

#include <ctime>

#include "base/time.hpp"

namespace hocket {

// Returns CLOCK_MONOTONIC now. Thread-safe, async-signal-safe. It is inlined because it is read on paths where each
// cold line of code costs.
[[gnu::always_inline]] inline Time node_now() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return time_from_ns(static_cast<std::int64_t>(ts.tv_sec) * 1'000'000'000 + ts.tv_nsec);
}

}  // namespace hocket
