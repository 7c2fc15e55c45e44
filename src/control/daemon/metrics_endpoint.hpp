// /metrics of the leader: it counts what the leader handles, and gives the page out at the address of the settings.
//
// The leader's loop watches `descriptor` and calls `serve`. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "coordinator/coordinator.hpp"
#include "metrics/counters.hpp"
#include "metrics/exposition.hpp"
#include "metrics/http_server.hpp"

namespace hocket::daemon {

// The longest of many durations in the last one to two minutes. A page that is read does not change it, so that several
// readers see the same.
class LongestLately {
 public:
  static constexpr Duration window = std::chrono::minutes{1};

  void add(Duration value, Time now);
  Duration longest(Time now) const;

 private:
  Time begun_{};  // start of the present window
  Duration present_{};
  Duration previous_{};
};

class MetricsEndpoint {
 public:
  // Adds to the facts what the leader itself knows: its connections, and whether the trace is broken.
  using DescribeLeader = std::function<void(metrics::Facts&)>;

  // Listens at `address`, which the settings have checked. Logs the address, and a warning if other machines reach it.
  static Result<std::unique_ptr<MetricsEndpoint>> start(const std::string& address,
                                                        const coordinator::Coordinator& coordinator,
                                                        DescribeLeader describe);

  // Counts an event that the coordinator has handled, and its commands.
  void count(const event::Event& event, const std::vector<coordinator::Command>& commands);
  // Counts one pass of the leader's loop, which began at `woke` and ends now.
  void count_pass(Time woke);

  int descriptor() const { return server_->descriptor(); }
  void serve() { server_->serve(); }

 private:
  MetricsEndpoint(const coordinator::Coordinator& coordinator, DescribeLeader describe);
  std::string page() const;

  const coordinator::Coordinator& coordinator_;
  DescribeLeader describe_;
  double started_s_;
  metrics::EventCounters counters_;
  metrics::Histogram loop_;
  LongestLately longest_pass_;
  std::unique_ptr<metrics::HttpServer> server_;
};

}  // namespace hocket::daemon
