// Tuning: what a servers policy sets of an application's collective I/O, from the next control point on (CLARISSE,
// sections II and IV-A). Hints of the program go first; what neither sets has its default. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hocket::event {

struct Tuning {
  std::int64_t aggregators = 0;   // 0: not set
  std::int64_t buffer_bytes = 0;  // of a collective buffer; 0: not set
  std::string method{};           // one of `tuned_methods`; "": not set

  bool any() const { return aggregators > 0 || buffer_bytes > 0 || !method.empty(); }
  bool operator==(const Tuning&) const = default;
};

// Bounds of a collective buffer. A policy may set less than a program may ask for: the memory is the program's.
constexpr std::int64_t smallest_buffer_bytes = 4 << 10, largest_tuned_buffer_bytes = 64 << 20;

// The methods, as the hint `hocket_collective` names them. Their order is that of io_client::Method.
constexpr std::array<std::string_view, 3> tuned_methods{"auto", "view", "list"};

}  // namespace hocket::event
