#include "file_system/ask_target.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/host_name.hpp"
#include "base/node_number.hpp"
#include "base/whole_file.hpp"

namespace hocket::file_system {
namespace {

// The most bytes that are read of each file. A node with thousands of containers has a megabyte of mounts.
constexpr std::size_t most_mounts_bytes = 16 << 20;
constexpr std::size_t most_configuration_bytes = 1 << 20;

constexpr const char* beegfs_configuration = "/etc/beegfs/beegfs-client.conf";

std::vector<Mount> own_mounts() { return parse_mounts(whole_file("/proc/self/mountinfo", most_mounts_bytes)); }

std::string configured(const std::string& file, std::string_view name) {
  return std::string(setting_in(whole_file(file.c_str(), most_configuration_bytes), name));
}

std::string file_system_id_at(const char* where) {
  struct statfs system {};
  std::uint64_t id = 0;
  static_assert(sizeof system.f_fsid == sizeof id);
  if (statfs(where, &system) != 0) return "";
  std::memcpy(&id, &system.f_fsid, sizeof id);
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(id));
  return id == 0 ? "" : digits.data();
}

std::string evidence_of(const Mount& mount, const char* where) {
  switch (evidence_for(mount)) {
    case Evidence::none: return "";
    case Evidence::nfs_volume:
      return nfs_volume_in(whole_file("/proc/fs/nfsfs/volumes", most_mounts_bytes), mount.device);
    case Evidence::beegfs_management: {
      const std::string_view file = option_of(mount.options, "cfgFile");
      return configured(file.empty() ? beegfs_configuration : std::string(file), "sysMgmtdHost");
    }
    case Evidence::ceph_cluster: return configured("/etc/ceph/ceph.conf", "fsid");
    case Evidence::file_system_id: return file_system_id_at(where ? where : mount.point.c_str());
  }
  return "";
}

// Returns the operator's names; none if the variable is wrong. libhocket and hocketd complain of it
// (parse_target_names).
const TargetNames& names_of_operator() {
  static const TargetNames names = [] {
    const char* const text = std::getenv(target_names_variable);
    auto parsed = parse_target_names(text ? text : "");
    return parsed ? std::move(parsed).value() : TargetNames{};
  }();
  return names;
}

std::string own_node() {
  const std::string number = node_number();
  return number.empty() ? host_name() : number;  // without /proc
}

std::string name_of(const std::vector<Mount>& mounts, const Mount& mount, const char* where) {
  const std::string name = target_name(mount, evidence_of(mount, where), own_node());
  return chosen_name(names_of_operator(), mounts, mount, name);
}

// Returns the id of the mount on which the path lies; 0 if the kernel does not say it.
std::uint64_t mount_id_at(const char* where) {
#ifdef STATX_MNT_ID
  struct statx status {};
  if (syscall(SYS_statx, AT_FDCWD, where, 0, STATX_MNT_ID, &status) == 0 && (status.stx_mask & STATX_MNT_ID) != 0)
    return status.stx_mnt_id;
#endif
  static_cast<void>(where);
  return 0;
}

DeviceNumber number_of(dev_t device) { return {major(device), minor(device)}; }

std::string find_out(dev_t device, const char* where) {
  const std::vector<Mount> mounts = own_mounts();
  const DeviceNumber number = number_of(device);
  if (const Mount* const mount = mount_of(mounts, number)) return name_of(mounts, *mount, where);
  // The number may be one that a file system gives to some of its files.
  const Mount* const mount = where ? mount_with_id(mounts, mount_id_at(where)) : nullptr;
  // That of a block device names the disk below an overlay, for programs in a container and beside it.
  const bool is_disk = number.major_number != 0 && (!mount || mount->type == "overlay");
  return mount && !is_disk ? name_of(mounts, *mount, where) : local_target_name(number, own_node());
}

// The names that are known, by device. An entry is written once and stays, because threads read it without a lock. If
// all are taken, names of further devices are found out each time.
class KnownTargets {
 public:
  // Returns nullptr if it is not known.
  const std::string* find(dev_t device) const {
    for (const std::atomic<const KnownTarget*>& place : entries_) {
      const KnownTarget* const entry = place.load(std::memory_order_acquire);
      if (!entry) return nullptr;
      if (entry->device == device) return &entry->name;
    }
    return nullptr;
  }
  void add(dev_t device, const std::string& name) {
    auto entry = std::make_unique<const KnownTarget>(KnownTarget{device, name});
    for (std::atomic<const KnownTarget*>& place : entries_) {
      const KnownTarget* taken = nullptr;
      if (place.compare_exchange_strong(taken, entry.get(), std::memory_order_release, std::memory_order_acquire))
        return static_cast<void>(entry.release());
      if (taken->device == device) return;  // another thread was faster
    }
  }

 private:
  struct KnownTarget {
    dev_t device;
    std::string name;
  };
  std::array<std::atomic<const KnownTarget*>, 256> entries_{};
};
constinit KnownTargets known;

std::string path_of_descriptor(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

}  // namespace

void read_target_names() { names_of_operator(); }

std::string target_of_device(dev_t device, const char* where) {
  if (const std::string* const name = known.find(device)) return *name;
  std::string name = find_out(device, where);
  known.add(device, name);
  return name;
}

std::string target_of_descriptor(dev_t device, int descriptor) {
  if (const std::string* const name = known.find(device)) return *name;
  return target_of_device(device, path_of_descriptor(descriptor).c_str());
}

std::string target_of_path(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? target_of_device(status.st_dev, path.c_str()) : "";
}

std::string target_called(const std::string& text) {
  DeviceNumber device;
  if (!read_device(text, device)) return text;
  const std::vector<Mount> mounts = own_mounts();
  const Mount* const mount = mount_of(mounts, device);
  return mount ? name_of(mounts, *mount, nullptr) : text;
}

std::string renamed(const TargetNames& names, const std::string& name) {
  if (names.empty()) return name;
  const std::vector<Mount> mounts = own_mounts();
  const auto is_it = [&](const Mount& mount) { return name_of(mounts, mount, nullptr) == name; };
  const auto found = std::find_if(mounts.begin(), mounts.end(), is_it);
  return chosen_name(names, mounts, found == mounts.end() ? Mount{} : *found, name);
}

std::vector<MountedTarget> mounted_targets() {
  const std::vector<Mount> mounts = own_mounts();
  std::vector<MountedTarget> targets;
  for (const Mount& mount : mounts)
    if (mount_of(mounts, mount.device) == &mount) targets.push_back({name_of(mounts, mount, nullptr), mount});
  return targets;
}

}  // namespace hocket::file_system
