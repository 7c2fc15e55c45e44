// The settings of the coordinator, with the policy of a file where one is named.
#pragma once

#include "config/settings.hpp"
#include "coordinator/command.hpp"
#include "pypolicy/policy_file.hpp"

namespace hocket::config {

// As for_coordinator, but with the policy of `policy_file`, which takes the place of its kind. Sets the file's absolute
// path and SHA-256 in `settings`, for the trace. The error names the file: it cannot be run, or it is not the one of
// `policy_file_sha256`. `say` gets what goes wrong in it later.
Result<coordinator::Settings> with_policy_file(Settings& settings, pypolicy::Say say);

}  // namespace hocket::config
