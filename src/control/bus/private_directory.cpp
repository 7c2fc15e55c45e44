#include "bus/private_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/descriptor.hpp"

namespace hocket::bus {

Status make_private_directory(const std::string& directory, const std::string& option) {
  const std::string another = "name another with " + option + " or HOCKET_DIR";
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path{directory}.parent_path(), ignored);
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
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
  if ((status.st_mode & 077U) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777U);
    return Error{"the runtime directory " + directory + " is open to other users (mode " + mode.data() +
                 "); chmod 700 it, or " + another};
  }
  return success();
}

}  // namespace hocket::bus
