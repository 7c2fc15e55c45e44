// This process, as it introduces itself to the other end of a link between nodes.
#pragma once

#include <unistd.h>

#include <string>

#include "config/settings.hpp"
#include "daemon/node_identity.hpp"
#include "link/message.hpp"

namespace hocket::daemon {

inline link::Introduction introduction(const config::DaemonSettings& settings, const std::string& node) {
  return {link::link_version, HOCKET_VERSION,         node, node_identity(), config::with_cores(settings).cores,
          geteuid(),          settings.users != "all"};
}

}  // namespace hocket::daemon
