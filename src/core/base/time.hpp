// Time is a whole number of nanoseconds everywhere in hocket, so that a recorded run replays bit for bit.
//
// Nothing here reads a clock: pure folders get the time with each event. `base/clock.hpp` is for the shells.
#pragma once

#include <chrono>
#include <cstdint>

namespace hocket {

// The clock of all times: CLOCK_MONOTONIC of the node that stamped the event.
struct NodeClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<NodeClock>;
  static constexpr bool is_steady = true;
};

using Duration = NodeClock::duration;
using Time = NodeClock::time_point;

constexpr Time time_from_ns(std::int64_t ns) { return Time{Duration{ns}}; }
constexpr std::int64_t to_ns(Time t) { return t.time_since_epoch().count(); }

// Seconds as people and the papers' equations use them. `from_s` needs a value within int64 nanoseconds.
constexpr double to_s(Duration d) { return static_cast<double>(d.count()) * 1e-9; }
constexpr Duration from_s(double seconds) { return Duration{static_cast<std::int64_t>(seconds * 1e9)}; }

}  // namespace hocket
