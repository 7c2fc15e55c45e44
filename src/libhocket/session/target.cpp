#include "session/target.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>

#include "base/device_target.hpp"

namespace hocket::runtime {
namespace {

// The file system types that ROMIO accepts as a prefix.
constexpr std::array<std::string_view, 14> file_systems = {"ufs",   "nfs",    "xfs",    "panfs",  "pvfs",
                                                           "pvfs2", "lustre", "gpfs",   "beegfs", "quobytefs",
                                                           "ime",   "daos",   "testfs", "sfs"};

bool find_target(const std::string& path, std::string& target) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  target = target_of(status.st_dev);
  return true;
}

}  // namespace

std::string_view without_prefix(std::string_view file) {
  const std::size_t colon = file.find(':');
  if (colon == std::string_view::npos) return file;
  const std::string_view prefix = file.substr(0, colon);
  return std::find(file_systems.begin(), file_systems.end(), prefix) == file_systems.end() ? file
                                                                                           : file.substr(colon + 1);
}

std::string target_of(dev_t device) { return device_target(major(device), minor(device)); }

std::string target_of(std::string_view file) {
  std::string path(without_prefix(file));
  std::string target;
  if (find_target(path, target)) return target;
  const std::size_t slash = path.rfind('/');
  path = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  find_target(path, target);
  return target;
}

}  // namespace hocket::runtime
