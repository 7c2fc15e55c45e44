// The time that I/O servers need for one operation of an application, in closed form.
//
// Each client divides its bytes evenly over the servers, and sends a server requests of at most `request_bytes`, at
// least one. A server handles one after the other, so it needs
//
//   requests × (service + injected delay) + bytes / bandwidth,
//
// and the operation lasts as long as its slowest server needs. Times are seconds, bandwidths bytes per second.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sim/scenario.hpp"

namespace hocket::sim {

// The part of one operation that each of its servers has.
struct ServerPart {
  double requests = 0;
  double bytes = 0;
  friend bool operator==(const ServerPart&, const ServerPart&) = default;
};

// Returns each server's part of an operation. Preconditions: clients, servers and request_bytes are positive.
inline ServerPart part_of_each(double bytes, std::int64_t clients, double request_bytes, std::size_t servers) {
  const auto n = static_cast<double>(servers);
  const auto senders = static_cast<double>(clients);
  // The tolerance keeps a rounding error from counting as a request.
  const double of_a_client = std::ceil(bytes / senders / n / request_bytes - 1e-9);
  return {senders * std::max(1.0, of_a_client), bytes / n};
}

// Returns the seconds that the server needs for its part if nothing else uses it.
inline double seconds_of(const ServerSpec& server, const ServerPart& part, double delay_s) {
  const double handling = part.requests * (server.service_s + delay_s);
  const double receiving = server.bandwidth > 0 ? part.bytes / server.bandwidth : 0;
  return handling + receiving;
}

// Returns the rate at which all servers of the target together take an operation, without load or other applications;
// infinity if they are no limit, or if there are none.
inline double rate_of_servers(const TargetSpec& target, double bytes, std::int64_t clients, double request_bytes) {
  if (target.servers.empty() || request_bytes <= 0) return std::numeric_limits<double>::infinity();
  const ServerPart part = part_of_each(bytes, clients, request_bytes, target.servers.size());
  double longest = 0;
  for (const ServerSpec& server : target.servers) longest = std::max(longest, seconds_of(server, part, 0));
  return longest > 0 ? bytes / longest : std::numeric_limits<double>::infinity();
}

}  // namespace hocket::sim
