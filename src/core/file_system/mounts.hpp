// The mounts of a process, as /proc/self/mountinfo lists them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::file_system {

// The number of a file system on its node, as stat has it (st_dev).
struct DeviceNumber {
  unsigned major_number = 0;  // 0: the file system is on no block device
  unsigned minor_number = 0;
  bool operator==(const DeviceNumber&) const = default;
};

struct Mount {
  std::uint64_t id = 0;
  DeviceNumber device;
  std::string root;     // the directory of the file system that is mounted
  std::string point;    // where
  std::string type;     // "ext4", "nfs4", "fuse.sshfs"
  std::string source;   // what was mounted, in the words of the file system
  std::string options;  // of the file system, not of the mount
};

// Parses the text of /proc/self/mountinfo. Lines that are none of it are left out.
std::vector<Mount> parse_mounts(std::string_view text);

// Returns a mount of the file system with this number: that of its root, then the one with the shortest path. nullptr
// if there is none.
const Mount* mount_of(const std::vector<Mount>& mounts, DeviceNumber device);
// Returns the mount with this id; nullptr if there is none.
const Mount* mount_with_id(const std::vector<Mount>& mounts, std::uint64_t id);
// Returns the mount on which an absolute path lies that has no symbolic links; nullptr if there is none.
const Mount* mount_at(const std::vector<Mount>& mounts, std::string_view path);

// Returns the value of an option, "addr" in "rw,addr=10.0.0.1"; "" if there is none.
std::string_view option_of(std::string_view options, std::string_view name);

// Returns the value that a line "NAME = VALUE" of a configuration file has last; "" if there is none. '#' and ';' begin
// comments.
std::string_view setting_in(std::string_view text, std::string_view name);

}  // namespace hocket::file_system
