// Replays a trace: gives its events to a fresh coordinator, which must send the same commands, bit for bit. This
// checks that the coordinator is deterministic, and reproduces a decision that a user reports.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hocket::daemon {

// Returns one line with the numbers of events and commands that agreed. Returns an error at the first difference: the
// line, what the trace has, and what the coordinator commands now. A trace that continues others needs them beside
// it.
Result<std::string> replay(const std::string& trace);

}  // namespace hocket::daemon
