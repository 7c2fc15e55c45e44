// Stripes: which I/O server has which bytes of a file or data set, and how an access is divided among the servers.
// Pure.
//
// Stripe i of a file belongs to server i mod n, of n servers in their canonical order (event/server_map.hpp), unless
// they have different weights: then a loaded server gets a smaller share (CLARISSE, section III-C). So a byte has the
// same server in each access, of whichever process: a server may hold data that are not in the file yet. Accesses of
// neighbouring data also meet at one server, which merges them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/view.hpp"

namespace hocket::layout {

constexpr std::int64_t stripe_bytes = 1 << 20;

// Returns the index of the server that has the byte at this offset, of servers with equal weights. Precondition:
// servers > 0.
constexpr std::size_t server_of(std::int64_t offset, std::size_t servers) {
  return static_cast<std::size_t>(offset / stripe_bytes) % servers;
}

// Returns how many of the bytes before `end` one of the servers has, all of equal weight. Precondition: end >= 0;
// index < servers.
constexpr std::int64_t bytes_of_server(std::int64_t end, std::size_t index, std::size_t servers) {
  const std::int64_t row_bytes = stripe_bytes * static_cast<std::int64_t>(servers);
  const std::int64_t before = stripe_bytes * static_cast<std::int64_t>(index);
  return end / row_bytes * stripe_bytes + std::clamp<std::int64_t>(end % row_bytes - before, 0, stripe_bytes);
}

// True if one of the servers, all of equal weight, has all bytes of the extent, which is not empty.
constexpr bool is_of_server(Extent file, std::size_t index, std::size_t servers) {
  const bool in_one_stripe = file.first / stripe_bytes == (file.end - 1) / stripe_bytes;
  return servers == 1 || (in_one_stripe && server_of(file.first, servers) == index);
}

// Says which server has which stripe: a pattern of servers that repeats. In it each server has as many stripes as its
// weight says, after the weights were divided by their greatest common divisor. They are dealt out by smooth weighted
// round robin: the next stripe goes to the server that is furthest behind its share, of equal ones to the first. So
// equal weights give server i mod n. Making one costs O(servers · sum of weights), looking up O(1).
class Striping {
 public:
  // Equal weights. Not explicit, because most callers have just a number. Precondition: servers > 0.
  Striping(std::size_t servers) : servers_(servers) {}  // NOLINT(google-explicit-constructor)
  // Precondition: there is a weight, and all are positive.
  explicit Striping(std::span<const int> weights);

  std::size_t servers() const { return servers_; }
  std::size_t server_of_stripe(std::int64_t stripe) const {
    if (pattern_.empty()) return static_cast<std::size_t>(stripe) % servers_;
    return pattern_[static_cast<std::size_t>(stripe) % pattern_.size()];
  }
  // Returns the index of the server that has the byte at this offset.
  std::size_t server_of_byte(std::int64_t offset) const { return server_of_stripe(offset / stripe_bytes); }

 private:
  std::size_t servers_;
  std::vector<std::uint16_t> pattern_;  // empty: all weights are equal
};

// A part of an access, which one server gets. It lies within one stripe.
struct StripeChunk {
  std::size_t server = 0;
  Extent data;             // bytes of data of the view; not empty
  std::int64_t round = 0;  // chunks of one round follow each other
  bool operator==(const StripeChunk&) const = default;
};

// Yields all chunks of an access. A round has one window of each stripe of a row, which is as many stripes as there are
// servers; so all servers have work at a time if their weights are equal. The view must outlive the object. Rows
// without data cost nothing.
class StripeChunks {
 public:
  // `window_bytes` is the length of a window, at most a stripe. Precondition: the view contains the data;
  // window_bytes > 0.
  StripeChunks(const FileView& view, Extent data, Striping striping, std::int64_t window_bytes = stripe_bytes);
  std::optional<StripeChunk> next();

  // False if each access within this extent of the file has one round at most.
  static bool may_have_rounds(Extent file, std::size_t servers, std::int64_t window_bytes);

 private:
  std::int64_t round_of(std::int64_t offset) const;
  static bool later(const StripeChunk& a, const StripeChunk& b);
  void push(const StripeChunk& rest);
  void begin_row();

  const FileView& view_;
  Extent left_;  // of rows that have not begun
  Striping striping_;
  std::int64_t servers_;
  std::int64_t window_;
  std::vector<StripeChunk> heap_;  // for each stripe of the row: the data that no chunk has yet
};

}  // namespace hocket::layout
