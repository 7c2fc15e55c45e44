// Whom a daemon serves, from its settings.
#pragma once

#include "base/result.hpp"
#include "bus/rights.hpp"
#include "config/settings.hpp"

namespace hocket::daemon {

// Looks the group of operators up. Fails if there is no such group.
Result<bus::Users> users_of(const config::DaemonSettings& settings);

}  // namespace hocket::daemon
