// EventCounters of events and commands, as the trace records them. Each counter can be summed up from the trace again.
//
// The leader passes every event and its commands here, after the members have their answers; the coordinator counts
// nothing itself. Pure, not thread-safe. An event costs some lookups in small maps.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "event/event.hpp"
#include "metrics/by_label.hpp"
#include "metrics/histogram.hpp"

namespace hocket::metrics {

// What was counted at one target.
struct TargetCounts {
  std::int64_t grants = 0;
  double io_s = 0;
  double wait_s = 0;
};

// The sums since the start of the leader.
struct Counts {
  static const std::span<const double> wait_bounds_s;

  std::map<std::string_view, std::int64_t> events;  // by type; all types of tools are USER
  ByLabel<TargetCounts> targets;
  Histogram grant_waits{wait_bounds_s};
  std::int64_t lease_ends = 0;
  std::int64_t pauses = 0;
  std::int64_t refused = 0;
  ByLabel<std::int64_t> decisions;                                     // by action
  std::map<std::pair<std::string_view, bool>, std::int64_t> outcomes;  // by quantity, and whether it was met
  // The estimated effect of coordination on applications that have left (SlowdownEstimate), in seconds.
  std::int64_t estimates = 0;
  double saved_s = 0;
  double lost_s = 0;
};

class EventCounters {
 public:
  void count(const event::Event& event);
  void count_command(MemberId to, const event::Body& command);

  const Counts& counts() const { return counts_; }

 private:
  void count(const event::IoPhase& phase, Time now);
  void count(const event::Decision& decision);
  // Counts a grant unless the request has one, since GRANT_IO is also sent for a new bandwidth share.
  void count(MemberId to, const event::GrantIo& grant);
  void forget(MemberId member, RequestId request);

  Counts counts_;
  std::unordered_map<MemberId, std::set<RequestId>> granted_;
};

}  // namespace hocket::metrics
