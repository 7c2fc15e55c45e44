#include "config/policy_file.hpp"

#include <filesystem>
#include <utility>

namespace hocket::config {

Result<coordinator::Settings> with_policy_file(Settings& settings, pypolicy::Say say) {
  coordinator::Settings prepared = for_coordinator(settings);
  if (settings.policy_file.empty()) return prepared;
  std::error_code ignored;
  // The daemon may change its directory, and a replay runs in another one.
  const auto absolute = std::filesystem::absolute(settings.policy_file, ignored);
  if (!absolute.empty()) settings.policy_file = absolute.string();
  const auto file = pypolicy::load(settings.policy_file, std::move(say));
  if (!file) return file.error();
  // A trace names the digest of its policy. Another file would give other decisions and make a replay meaningless.
  const std::string& expected = settings.policy_file_sha256;
  if (!expected.empty() && expected != file.value().sha256) {
    return Error{settings.policy_file + " has SHA-256 " + file.value().sha256 + ", not " + expected +
                 ": it was changed since; use the file as it was"};
  }
  settings.policy_file_sha256 = file.value().sha256;
  prepared.loaded = file.value().policy;
  prepared.policy = policy::with(prepared.policy, prepared.loaded);
  return prepared;
}

}  // namespace hocket::config
