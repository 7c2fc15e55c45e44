#include "config/policy_file.hpp"

#include <filesystem>
#include <utility>

namespace hocket::config {

Result<coordinator::CoordinatorSettings> with_policy_file(DaemonSettings& settings, pypolicy::MessageSink say) {
  coordinator::CoordinatorSettings prepared = for_coordinator(settings);
  if (settings.policy_file.empty()) return prepared;
  std::error_code ignored;
  // The daemon may change its directory, and a replay runs in another one.
  const auto absolute = std::filesystem::absolute(settings.policy_file, ignored);
  if (!absolute.empty()) settings.policy_file = absolute.string();
  const auto file = pypolicy::load(settings.policy_file, settings.policy_file_sha256, std::move(say));
  if (!file) return file.error();
  settings.policy_file_sha256 = file.value().sha256;
  prepared.loaded = file.value().policy;
  prepared.policy = policy::with(prepared.policy, prepared.loaded);
  return prepared;
}

}  // namespace hocket::config
