// hocketd --agent: the process of a node whose leader runs elsewhere (link/relay.hpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/settings.hpp"
#include "link/relay.hpp"

namespace hocket::daemon {

// Returns the words of a text, like the addresses of leaders in the settings.
std::vector<std::string> words_of(const std::string& text);

// Carries what members of this node say to the leader, until the daemon is told to end. It listens in `directory`,
// which the caller has prepared and locked. `listening` is called once it listens and a leader has answered, or none
// has. Returns an error if it cannot begin.
Status relay(const config::DaemonSettings& settings, const std::string& directory, std::unique_ptr<link::Tls> tls,
             const std::function<void(const std::string& socket)>& listening);

}  // namespace hocket::daemon
