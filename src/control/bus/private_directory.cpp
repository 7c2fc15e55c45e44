#include "bus/private_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/descriptor.hpp"

namespace hocket::bus {

Status make_runtime_directory(const std::string& directory, const std::string& option, bool for_all_users) {
  const mode_t forbidden = for_all_users ? 022 : 077;
  const std::string another = "name another with " + option + " or HOCKET_DIR";
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path{directory}.parent_path(), ignored);
  const int made = mkdir(directory.c_str(), 0777 & ~forbidden);
  if (made != 0 && errno != EEXIST) {
    return Error{"cannot make the runtime directory " + directory + ": " + error_text(errno) + "; " + another};
  }
  // A symbolic link could lead to a directory that another user controls.
  struct stat status {};
  if (lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    const char* what = S_ISLNK(status.st_mode) ? " is a symbolic link, not a directory; " : " is not a directory; ";
    return Error{directory + what + another};
  }
  if (status.st_uid != geteuid()) {
    return Error{"the runtime directory " + directory + " belongs to user " + std::to_string(status.st_uid) +
                 ", not to user " + std::to_string(geteuid()) + "; " + another};
  }
  // Programs of all users must find the socket in the directory.
  const bool is_new = made == 0;
  if (for_all_users && is_new) chmod(directory.c_str(), 0755);
  if (for_all_users && !is_new && (status.st_mode & 0755) != 0755)
    return Error{"the runtime directory " + directory + " is closed to other users; chmod 755 it, or " + another};
  if ((status.st_mode & forbidden) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777U);
    return Error{"the runtime directory " + directory + " is open to other users (mode " + mode.data() + "); chmod " +
                 (for_all_users ? "755" : "700") + " it, or " + another};
  }
  return success();
}

}  // namespace hocket::bus
