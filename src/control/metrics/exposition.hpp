// The text of /metrics: what is known of the leader, in Prometheus' text format (exposition format 0.0.4).
//
// docs/operate.md defines each metric. exposition.cpp is the only list of them here. Pure, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "metrics/counters.hpp"

namespace hocket::metrics {

inline constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

// Requests at one target.
struct TargetRequests {
  std::int64_t waiting = 0;
  std::int64_t granted = 0;
};

// The I/O servers in one state.
struct ServersInState {
  std::string_view state;
  std::int64_t servers = 0;
};

// All that the page shows: what was counted, and the state of the leader now.
struct Facts {
  Counts counted;
  std::string version;
  std::string policy;
  double started_s = 0;  // since 1970
  std::int64_t applications = 0;
  std::int64_t members = 0;      // of applications and I/O servers
  std::int64_t connections = 0;  // members and tools
  std::int64_t agents = 0;       // of other nodes
  ByLabel<TargetRequests> requests;
  std::array<ServersInState, 5> servers{{{"up"}, {"drained"}, {"slow"}, {"hung"}, {"lost"}}};
  bool trace_broken = false;
  Histogram loop{{}};  // passes of the leader's loop
  Duration loop_longest{};
};

// Returns the page.
std::string exposition(const Facts& facts);

// The parts of the text format. `escaped` returns the value of a label as it stands between its quotes, `number` the
// shortest text that gives the same number again.
std::string escaped(std::string_view label_value);
std::string number(double value);

}  // namespace hocket::metrics
