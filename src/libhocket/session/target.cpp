#include "session/target.hpp"

#include <algorithm>
#include <array>

#include "file_system/ask_target.hpp"

namespace hocket::runtime {
namespace {

// The file system types that ROMIO accepts as a prefix.
constexpr std::array<std::string_view, 14> file_systems = {"ufs",   "nfs",    "xfs",    "panfs",  "pvfs",
                                                           "pvfs2", "lustre", "gpfs",   "beegfs", "quobytefs",
                                                           "ime",   "daos",   "testfs", "sfs"};

}  // namespace

std::string_view without_prefix(std::string_view file) {
  const std::size_t colon = file.find(':');
  if (colon == std::string_view::npos) return file;
  const std::string_view prefix = file.substr(0, colon);
  return std::find(file_systems.begin(), file_systems.end(), prefix) == file_systems.end() ? file
                                                                                           : file.substr(colon + 1);
}

std::string target_of(dev_t device, int descriptor) {
  return descriptor < 0 ? file_system::target_of_device(device, nullptr)
                        : file_system::target_of_descriptor(device, descriptor);
}

void read_target_names() { file_system::read_target_names(); }

std::string target_called(const std::string& name) { return file_system::target_called(name); }

bool names_file_system(std::string_view name) { return file_system::names_file_system(name); }

std::string target_of(std::string_view file) {
  const std::string path(without_prefix(file));
  if (std::string target = file_system::target_of_path(path); !target.empty()) return target;
  const std::size_t slash = path.rfind('/');
  return file_system::target_of_path(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

}  // namespace hocket::runtime
