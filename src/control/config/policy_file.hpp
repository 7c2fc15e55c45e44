// Combines hocket.toml with a policy in Python. It is apart from settings.hpp, so that most users of the settings
// need no policy loader.
#pragma once

#include "config/settings.hpp"
#include "coordinator/command.hpp"
#include "pypolicy/policy_file.hpp"

namespace hocket::config {

// Returns the result of for_coordinator, with the policy of `policy_file` in the place of its kind. Without such a
// file the result is that of for_coordinator. Stores the file's absolute path and SHA-256 in `settings`, for the
// trace's header. The error names the file: it cannot be run, or its SHA-256 is not `policy_file_sha256`. `say`
// receives mistakes of the policy later, one line each.
Result<coordinator::CoordinatorSettings> with_policy_file(DaemonSettings& settings, pypolicy::MessageSink say);

}  // namespace hocket::config
