// Bounds what connections cost that have not authenticated: how many there may be, and what they write to the log.
// Pure, not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.hpp"

namespace hocket::server {

// The connections that have not authenticated yet, by peer. A new one is always admitted: where there are too many, the
// oldest of the peer that has most must go. A peer that only opens connections so displaces its own.
class Strangers {
 public:
  using Number = std::uint64_t;
  static constexpr std::size_t most = 1024;
  static constexpr std::size_t most_of_a_peer = 512;  // the ranks of a large node may all connect at once

  // Adds a connection from `peer`, a host. Returns the connection that must go for it, if one must.
  std::optional<Number> add(Number number, const std::string& peer);
  // Removes a connection that has authenticated or gone. Linear in the connections of its peer.
  void remove(Number number);
  std::size_t size() const { return peers_of_.size(); }
  bool contains(Number number) const { return peers_of_.contains(number); }

 private:
  std::unordered_map<std::string, std::deque<Number>> of_peer_;  // the oldest first
  std::unordered_map<Number, std::string> peers_of_;
};

// Limits the lines about strangers to some in a minute. The first line of a later minute says how many were left out.
class LineLimit {
 public:
  static constexpr int most = 20;

  // Returns the line to be written, or nothing.
  std::optional<std::string> pass(std::string_view line, Time now);

 private:
  Time since_{};
  int written_ = 0;
  std::int64_t left_out_ = 0;
};

}  // namespace hocket::server
