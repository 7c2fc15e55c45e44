// A recorded run, given to a fresh coordinator: it must command the same, bit for bit.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hocket::daemon {

// One line that says how many events and commands agreed. Fails at the first command that differs, naming the line,
// what the trace has and what the coordinator commands now.
Result<std::string> replay(const std::string& trace);

}  // namespace hocket::daemon
