#include "forward/capabilities.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/descriptor.hpp"

namespace hocket::forward {
namespace {

constexpr int in_a_word = 32;

}  // namespace

Status keep_only(std::initializer_list<int> capabilities) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return Error{"cannot see capabilities: " + error_text(errno)};
  std::array<std::uint32_t, _LINUX_CAPABILITY_U32S_3> kept{};
  for (const int one : capabilities) kept.at(static_cast<std::size_t>(one / in_a_word)) |= 1U << (one % in_a_word);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    sets.at(i).permitted &= kept.at(i);
    sets.at(i).effective &= kept.at(i);
    sets.at(i).inheritable = 0;
  }
  if (syscall(SYS_capset, &header, sets.data()) != 0) return Error{"cannot give up capabilities: " + error_text(errno)};
  return success();
}

Status give_up_new_rights() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error{"cannot forbid new rights: " + error_text(errno)};
  // Who may not change the bounding set (EPERM) has no capabilities, and gets none any more.
  for (int one = 0; prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; ++one)
    if (prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0 && errno != EPERM)
      return Error{"cannot give up capability " + std::to_string(one) + ": " + error_text(errno)};
  return success();
}

}  // namespace hocket::forward
