// Load and errors that are injected into a server, for tests and benchmarks (CLARISSE, section V-B). Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace hocket::server {

struct Injection {
  Duration delay{};        // each request takes so much longer
  int error = 0;           // or fails with it
  std::int64_t after = 1;  // from the n-th operation on, counted from 1
  bool is_due(std::int64_t operation) const { return operation >= after && (error != 0 || delay > Duration::zero()); }
};

// "delay=512us after=3", "errno=ENOSPC after=2": words divided by blanks. A delay has a unit: us, ms, s; the errors are
// ENOSPC, EIO, EDQUOT, EFBIG.
Result<Injection> read_injection(std::string_view text);

}  // namespace hocket::server
