// Asks the system what target_name.hpp needs, and names targets for the programs: libhocket, hocketd, hocket-server.
//
// A process keeps the name of each file system by its device number, up to a bound, so that /proc/self/mountinfo is
// read once for each. The names that the operator has chosen come from HOCKET_TARGET_NAMES, which is read once. All
// functions allocate memory. They are thread-safe without a lock, so a child of a fork may call them; no signal handler
// may. They are no cancellation points, and no wrapper of libc sees their system calls on files.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "file_system/target_name.hpp"

namespace hocket::file_system {

// Reads the operator's names now, rather than when the first target is named. A thread of the program might change the
// environment then.
void read_target_names();

// Returns the name of the file system with this number. `where`: a path on it, or nullptr. It tells which file system
// it is if mountinfo does not list the number: that of a subvolume of btrfs, or of a layer of overlayfs.
std::string target_of_device(dev_t device, const char* where);
// The same, with a file on it in place of a path.
std::string target_of_descriptor(dev_t device, int descriptor);

// Returns the name of the file system on which a path lies; "" if the path does not exist.
std::string target_of_path(const std::string& path);
// Returns the name of the file system that a device of this node, "dev:8:1", stands for. Any other text, and a device
// that is not mounted here, is returned as it is.
std::string target_called(const std::string& text);
// Returns the name that `names` gives the target; `name` if they give it none.
std::string renamed(const TargetNames& names, const std::string& name);

// The targets of this node, with one mount for each device: that of mount_of().
struct MountedTarget {
  std::string name;
  Mount mount;
};
std::vector<MountedTarget> mounted_targets();

}  // namespace hocket::file_system
