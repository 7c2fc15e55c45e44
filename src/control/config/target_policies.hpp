// The operator's policies for single targets, as hocket.toml names them: "/scratch=fcfs dev:8:1=cost?". A path stands
// for the file system on which it lies. After '?', applications may switch to another policy there.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "coordinator/command.hpp"
#include "file_system/target_name.hpp"

namespace hocket::config {

// Parses the text. The error says what is wrong: a word, a path that does not exist, a policy that is unknown or not
// for access, a target that is named twice.
Result<std::map<std::string, coordinator::TargetPolicy>> parse_target_policies(const std::string& text);
// Returns the text with the names of targets in place of what users may write for them: devices of this node
// ("dev:8:1"), and what `chosen` gives another name. The error is that a target is named twice.
Result<std::string> with_target_names(const std::string& text, const file_system::TargetNames& chosen);
// Returns the text that parses to these policies, without paths.
std::string text_of(const std::map<std::string, coordinator::TargetPolicy>& targets);

}  // namespace hocket::config
