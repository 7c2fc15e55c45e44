#include "config/target_policies.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>

#include "coordinator/arbitration/policies_in_force.hpp"
#include "file_system/ask_target.hpp"
#include "policy/combination.hpp"

namespace hocket::config {
namespace {

using coordinator::PoliciesInForce;

// Returns the name of a target: of the file system, as libhocket names it, if the word is an absolute path.
Result<std::string> target_of(const std::string& word) {
  if (!word.starts_with('/')) return word;
  std::string target = file_system::target_of_path(word);
  if (target.empty()) return Error{fmt::format("'{}': {}", word, std::strerror(errno))};
  return target;
}

Result<coordinator::TargetPolicy> policy_of(std::string_view name) {
  const bool allows = name.ends_with('?');
  if (allows) name.remove_suffix(1);
  const auto parsed = policy::parse_combination(name);
  if (!parsed) return parsed.error();
  if (parsed.value().has_others())
    return Error{fmt::format("'{}' is more than a policy for access to targets: name one of those", name)};
  return coordinator::TargetPolicy{parsed.value().access, allows};
}

}  // namespace

Result<std::map<std::string, coordinator::TargetPolicy>> parse_target_policies(const std::string& text) {
  std::map<std::string, coordinator::TargetPolicy> targets;
  std::istringstream words{text};
  for (std::string word; words >> word;) {
    const std::size_t sign = word.rfind('=');
    if (sign == std::string::npos || sign == 0 || sign + 1 == word.size())
      return Error{fmt::format("'{}' is no policy for a target: write TARGET=POLICY for each", word)};
    const auto target = target_of(word.substr(0, sign));
    if (!target) return target.error();
    const auto set = policy_of(std::string_view{word}.substr(sign + 1));
    if (!set) return set.error();
    if (target.value().size() > PoliciesInForce::longest_target)
      return Error{fmt::format("the name of target '{}…' has {} bytes: at most {} may be", target.value().substr(0, 64),
                               target.value().size(), PoliciesInForce::longest_target)};
    if (!targets.emplace(target.value(), set.value()).second)
      return Error{fmt::format("target '{}' is named twice", target.value())};
  }
  if (targets.size() > PoliciesInForce::most_targets)
    return Error{
        fmt::format("{} targets have policies: at most {} may", targets.size(), PoliciesInForce::most_targets)};
  return targets;
}

Result<std::string> with_target_names(const std::string& text, const file_system::TargetNames& chosen) {
  const auto parsed = parse_target_policies(text);
  if (!parsed) return parsed.error();
  std::map<std::string, coordinator::TargetPolicy> targets;
  for (const auto& [target, set] : parsed.value()) {
    const std::string name = file_system::renamed(chosen, file_system::target_called(target));
    if (!targets.emplace(name, set).second) return Error{fmt::format("target '{}' is named twice", name)};
  }
  return text_of(targets);
}

std::string text_of(const std::map<std::string, coordinator::TargetPolicy>& targets) {
  std::string text;
  for (const auto& [target, set] : targets)
    text += fmt::format("{}{}={}{}", text.empty() ? "" : " ", target, set.policy->name, set.allows ? "?" : "");
  return text;
}

}  // namespace hocket::config
