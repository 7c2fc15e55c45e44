// Names the target of a file system, so that all nodes that mount it have one name for it, and no two local ones share
// a name. Pure.
//
//   lustre:scratch   nfs:nfs1:8f1c9e0a   beegfs:mgmt1   gpfs:fs1   ceph:3c1f0b52   dev:8:1@8c3871fd2d164c03
//
// A name is printable, has no blanks, and has at most longest_target_name bytes. A longer one, or one of other bytes,
// ends with '#' and a hash of the whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "file_system/mounts.hpp"

namespace hocket::file_system {

inline constexpr std::size_t longest_target_name = 64;  // event::longest_file_system

// Some types of file systems are identified by more than the line of their mount. The caller finds it out
// (ask_target.cpp).
enum class Evidence {
  none,
  nfs_volume,         // the file system's id at its server: the column FSID of /proc/fs/nfsfs/volumes
  beegfs_management,  // the host of the management service: sysMgmtdHost of the client's configuration
  ceph_cluster,       // the id of the cluster: fsid of ceph.conf
  file_system_id,     // f_fsid of statfs, in hexadecimal digits
};
Evidence evidence_for(const Mount& mount);

// Returns the name of a mounted file system. `evidence`: as evidence_for() wants it; "" if it is not to be had. `node`:
// node_number().
std::string target_name(const Mount& mount, std::string_view evidence, std::string_view node);
// Returns the name of a file system that one node has for itself.
std::string local_target_name(DeviceNumber device, std::string_view node);

// Returns the column FSID of a device in /proc/fs/nfsfs/volumes; "" if it has none.
std::string nfs_volume_in(std::string_view volumes, DeviceNumber device);

// Returns true if the text begins as the name of a file system does.
bool names_file_system(std::string_view text);

// Returns true for "dev:8:1", a device of this node as users write it, and stores its number.
bool read_device(std::string_view text, DeviceNumber& device);

// Names that the operator has chosen, each for a path or for a name that target_name() returns.
using TargetNames = std::vector<std::pair<std::string, std::string>>;
// The environment variable of the operator's names, "PATH=NAME PATH=NAME".
inline constexpr const char* target_names_variable = "HOCKET_TARGET_NAMES";
// Parses "/scratch=big nfs:10.0.0.1:/home=home". The error says what is wrong.
Result<TargetNames> parse_target_names(std::string_view text);
// Returns the operator's name of a mounted file system that is called `name`; `name` if there is none.
std::string chosen_name(const TargetNames& names, const std::vector<Mount>& mounts, const Mount& mount,
                        const std::string& name);

}  // namespace hocket::file_system
