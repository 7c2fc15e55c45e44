// Delays and errors that are injected into a server, for tests and benchmarks (CLARISSE, section V-B). Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace hocket::server {

// An injected disturbance, and from which operation on it applies. The default injects nothing.
struct Injection {
  Duration delay{};        // added to each request
  int error = 0;           // errno with which each request fails instead; 0: none
  std::int64_t after = 1;  // number of the first operation concerned, counted from 1
  // True if the operation with this number is to be disturbed.
  bool is_due(std::int64_t operation) const { return operation >= after && (error != 0 || delay > Duration::zero()); }
};

// Parses words separated by blanks, such as "delay=512us after=3" or "errno=ENOSPC after=2". A delay has a unit: us,
// ms or s. The errors are ENOSPC, EIO, EDQUOT and EFBIG. Numbers are at most a million.
Result<Injection> read_injection(std::string_view text);

}  // namespace hocket::server
