// Replays a trace: gives its events to a fresh coordinator, and compares the facts of its commands with those in the
// trace. Texts for people are not compared. This checks that the coordinator is deterministic, reproduces a decision
// that a user reports, and shows what another version decides otherwise.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hocket::daemon {

// Returns one line with the numbers of events and commands that agreed. Returns an error at the first difference: the
// line, what the trace has, and what the coordinator commands now. In a trace of another version of hocket, differences
// are no error: the replay continues, and further lines list the events with other commands. A trace that continues
// others needs them beside it.
//
// `policy_file` names the policy in Python with which the trace was made; "": none. A trace names its policy file too,
// but whoever wrote the trace chose that name: a replay runs no code that its user did not name.
Result<std::string> replay(const std::string& trace, const std::string& policy_file);

}  // namespace hocket::daemon
