#include "file_system/target_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/fnv.hpp"

namespace hocket::file_system {
namespace {

constexpr std::size_t hash_digits = 16;

std::string hex_of(std::uint64_t number, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; number >>= 4) text[i] = "0123456789abcdef"[number & 15];
  return text;
}

// Makes a name of any text: printable, without blanks, and short. Two texts that differ keep names that differ.
std::string fitted(std::string text) {
  const auto is_bad = [](char c) { return c <= ' ' || c > '~'; };
  const bool is_plain = std::none_of(text.begin(), text.end(), is_bad);
  if (is_plain && text.size() <= longest_target_name) return text;
  const std::string hash = hex_of(fnv1a(text), hash_digits);
  std::replace_if(text.begin(), text.end(), is_bad, '_');
  text.resize(std::min(text.size(), longest_target_name - hash_digits - 1));
  return text + "#" + hash;
}

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

// Returns a host's name as DNS compares it.
std::string host_of(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  return lower(text);
}

std::string_view without_slashes_behind(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Splits "HOST:/PATH", where the host may be an IPv6 address in brackets. `path` is empty if there is no colon.
struct HostPath {
  std::string host;
  std::string_view path;
  explicit HostPath(std::string_view source) {
    const std::size_t rooted = source.find(":/");
    const std::size_t colon = rooted == std::string_view::npos ? source.rfind(':') : rooted;
    host = host_of(source.substr(0, colon));
    if (colon != std::string_view::npos) path = without_slashes_behind(source.substr(colon + 1));
  }
};

// The functions below return the name that a file system has on all nodes, or "" if it cannot be told.

// A client has one device for all mounts of one file system of a server, of whichever directory. The id of the file
// system at its server is the same for all of them and on all clients; the exported path is not.
std::string nfs_name(const Mount& mount, std::string_view evidence) {
  const HostPath from(mount.source);
  std::string volume(evidence);
  if (volume.ends_with(":0")) volume.resize(volume.size() - 2);
  if (volume == "0") volume.clear();
  if (volume.size() > hash_digits) volume = hex_of(fnv1a(volume), hash_digits);
  return "nfs:" + from.host + ":" + (volume.empty() ? std::string(from.path) : volume);
}

// The source is "NID:NID:/FSNAME/DIRECTORY". The NIDs depend on the client's network.
std::string lustre_name(const Mount& mount, std::string_view) {
  const std::size_t begin = mount.source.rfind(":/");
  if (begin == std::string::npos) return "";
  const std::string_view path = std::string_view{mount.source}.substr(begin + 2);
  const std::string_view name = path.substr(0, path.find('/'));
  return name.empty() ? "" : "lustre:" + std::string(name);
}

std::string gpfs_name(const Mount& mount, std::string_view) {
  const std::string_view name = last_part(mount.source);
  return name.empty() ? "" : "gpfs:" + std::string(name);
}

std::string beegfs_name(const Mount& mount, std::string_view evidence) {
  const std::string_view option = option_of(mount.options, "sysMgmtdHost");
  const std::string_view host = option.empty() ? evidence : option;
  return host.empty() ? "" : "beegfs:" + host_of(host);
}

// Returns the exclusive or of the four 32-bit words of a UUID in the order of x86, of which the kernel makes f_fsid; 0
// if the text is no UUID.
std::uint32_t folded_uuid(std::string_view text) {
  std::uint32_t folded = 0;
  unsigned digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    std::uint32_t digit = 0;
    if (std::from_chars(&c, &c + 1, digit, 16).ec != std::errc{}) return 0;
    const unsigned byte = digits / 2 % 4;
    folded ^= digit << (8 * byte + (digits % 2 == 0 ? 4 : 0));
    ++digits;
  }
  return digits == 32 ? folded : 0;
}

// Folds f_fsid of CephFS. Since Linux 5.16 its lower half is the folded id of the cluster, and the upper one the number
// of the file system in the cluster; before, both halves together were folded from the id.
std::uint32_t folded_ceph_id(std::string_view digits) {
  std::uint64_t id = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), id, 16);
  const auto low = static_cast<std::uint32_t>(id);
  const auto high = static_cast<std::uint32_t>(id >> 32);
  constexpr std::uint32_t most_numbers = 1U << 16;
  constexpr std::uint32_t no_number = 0xffffffff;
  return high < most_numbers || high == no_number ? low : low ^ high;
}

std::string ceph_name_of(std::uint32_t folded) { return folded == 0 ? "" : "ceph:" + hex_of(folded, 8); }

// The source is "USER@FSID.NAME=/PATH", or "MON,MON:/PATH". All clients of a cluster see one id of it.
std::string ceph_name(const Mount& mount, std::string_view evidence) {
  std::string_view id = option_of(mount.options, "fsid");
  const std::size_t sign = mount.source.find('@');
  if (id.empty() && sign != std::string::npos) {
    id = std::string_view{mount.source}.substr(sign + 1);
    id = id.substr(0, id.find('.'));
  }
  const std::uint32_t folded = folded_uuid(id);
  return ceph_name_of(folded != 0 ? folded : folded_ceph_id(evidence));
}

std::string ceph_fuse_name(const Mount&, std::string_view evidence) { return ceph_name_of(folded_uuid(evidence)); }

std::string gluster_name(const Mount& mount, std::string_view) {
  const HostPath from(mount.source);
  if (from.path.empty()) return "";
  // A volume is mounted as "HOST:VOLUME" or "HOST:/VOLUME", or a directory of it as "HOST:/VOLUME/DIRECTORY".
  const std::string_view path = from.path.substr(from.path.starts_with('/') ? 1 : 0);
  return "gluster:" + from.host + ":/" + std::string(path.substr(0, path.find('/')));
}

// The source is "USER@HOST:PATH"; old versions write "sshfs#" in front.
std::string sshfs_name(const Mount& mount, std::string_view) {
  std::string_view source = mount.source;
  source.remove_prefix(source.starts_with("sshfs#") ? 6 : 0);
  const std::string_view user = source.substr(0, source.find(':'));
  const std::size_t sign = user.rfind('@');
  const HostPath from(sign == std::string_view::npos ? source : source.substr(sign + 1));
  // A path that begins in the home directory depends on the user.
  if (!from.path.starts_with('/')) return source.find(':') == std::string_view::npos ? "" : "sshfs:" + lower(source);
  return "sshfs:" + from.host + ":" + std::string(from.path);
}

// The source is "//SERVER/SHARE/DIRECTORY", without regard to case.
std::string cifs_name(const Mount& mount, std::string_view) {
  if (!mount.source.starts_with("//")) return "";
  const std::size_t share = mount.source.find('/', 2);
  if (share == std::string::npos) return "";
  return "cifs:" + lower(std::string_view{mount.source}.substr(0, mount.source.find('/', share + 1)));
}

// The source is a server's address if the transport is a network. Else it is a tag that the node's host gives.
std::string plan9_name(const Mount& mount, std::string_view) {
  const std::string_view transport = option_of(mount.options, "trans");
  if (transport != "tcp" && transport != "rdma") return "";
  return "9p:" + host_of(mount.source) + ":" + std::string(option_of(mount.options, "aname"));
}

std::string orangefs_name(const Mount& mount, std::string_view) {
  return mount.source.find("://") == std::string::npos ? "" : "orangefs:" + mount.source;
}

// The file systems of shared disks.
std::string gfs2_name(const Mount& mount, std::string_view) {
  const std::string_view table = option_of(mount.options, "locktable");
  return table.find(':') == std::string_view::npos ? "" : "gfs2:" + std::string(table);
}
std::string ocfs2_name(const Mount&, std::string_view evidence) {
  return evidence.empty() ? "" : "ocfs2:" + std::string(evidence);
}

// The functions below return a name of one node. The device numbers of these file systems are one for each subvolume,
// or for each mount of one directory.
std::string zfs_name(const Mount& mount, std::string_view) {
  return "zfs:" + mount.source.substr(0, mount.source.find('/'));
}
std::string btrfs_name(const Mount& mount, std::string_view) { return "btrfs:" + mount.source; }
std::string bindfs_name(const Mount& mount, std::string_view) {
  return mount.source.starts_with('/') ? "bindfs:" + mount.source : "";
}

struct FileSystemType {
  std::string_view name;
  std::string (*target)(const Mount&, std::string_view);
  Evidence evidence = Evidence::none;
  bool is_local = false;
};
constexpr std::array types{
    FileSystemType{"nfs", nfs_name, Evidence::nfs_volume},
    FileSystemType{"nfs4", nfs_name, Evidence::nfs_volume},
    FileSystemType{"lustre", lustre_name},
    FileSystemType{"gpfs", gpfs_name},
    FileSystemType{"beegfs", beegfs_name, Evidence::beegfs_management},
    FileSystemType{"ceph", ceph_name, Evidence::file_system_id},
    FileSystemType{"fuse.ceph", ceph_fuse_name, Evidence::ceph_cluster},
    FileSystemType{"fuse.ceph-fuse", ceph_fuse_name, Evidence::ceph_cluster},
    FileSystemType{"fuse.glusterfs", gluster_name},
    FileSystemType{"fuse.sshfs", sshfs_name},
    FileSystemType{"cifs", cifs_name},
    FileSystemType{"smb3", cifs_name},
    FileSystemType{"9p", plan9_name},
    FileSystemType{"pvfs2", orangefs_name},
    FileSystemType{"gfs2", gfs2_name},
    FileSystemType{"ocfs2", ocfs2_name, Evidence::file_system_id},
    FileSystemType{"zfs", zfs_name, Evidence::none, true},
    FileSystemType{"btrfs", btrfs_name, Evidence::none, true},
    FileSystemType{"fuse.bindfs", bindfs_name, Evidence::none, true},
};

const FileSystemType* type_of(const Mount& mount) {
  const auto* const found =
      std::find_if(types.begin(), types.end(), [&](const FileSystemType& type) { return type.name == mount.type; });
  return found == types.end() ? nullptr : found;
}

// True if the host in a name, "nfs:HOST:/PATH" or "cifs://HOST/SHARE", is the node itself. Another node has another
// server by that name.
bool is_on_loopback(std::string_view name) {
  std::string_view host = name.substr(name.find(':') + 1);
  host.remove_prefix(host.starts_with("//") ? 2 : 0);
  if (host.starts_with("[::1]")) return true;
  host = host.substr(0, host.find_first_of(":/"));
  host = host.substr(host.rfind('@') + 1);
  return host == "localhost" || host.starts_with("localhost.") || host.starts_with("127.");
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= longest_target_name && fitted(std::string(text)) == text;
}

}  // namespace

Evidence evidence_for(const Mount& mount) {
  const FileSystemType* const type = type_of(mount);
  return type ? type->evidence : Evidence::none;
}

std::string local_target_name(DeviceNumber device, std::string_view node) {
  return fitted("dev:" + std::to_string(device.major_number) + ":" + std::to_string(device.minor_number) + "@" +
                std::string(node));
}

std::string target_name(const Mount& mount, std::string_view evidence, std::string_view node) {
  const FileSystemType* const type = type_of(mount);
  std::string name = type ? type->target(mount, evidence) : "";
  if (name.empty()) return local_target_name(mount.device, node);
  if (type->is_local || is_on_loopback(name)) name += "@" + std::string(node);
  return fitted(name);
}

std::string nfs_volume_in(std::string_view volumes, DeviceNumber device) {
  const std::string wanted = std::to_string(device.major_number) + ":" + std::to_string(device.minor_number);
  while (!volumes.empty()) {
    // A line is "NV SERVER PORT DEV FSID FSC", with blanks between.
    std::string_view line = volumes.substr(0, volumes.find('\n'));
    volumes.remove_prefix(std::min(line.size() + 1, volumes.size()));
    std::array<std::string_view, 5> words;
    for (std::string_view& word : words) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      word = line.substr(0, line.find(' '));
      line.remove_prefix(word.size());
    }
    if (words[3] == wanted) return std::string(words[4]);
  }
  return "";
}

bool names_file_system(std::string_view text) {
  constexpr std::array prefixes{"dev:",  "nfs:", "lustre:",   "gpfs:", "beegfs:", "ceph:", "gluster:", "sshfs:",
                                "cifs:", "9p:",  "orangefs:", "gfs2:", "ocfs2:",  "zfs:",  "btrfs:",   "bindfs:"};
  return std::any_of(prefixes.begin(), prefixes.end(), [text](const char* prefix) { return text.starts_with(prefix); });
}

bool read_device(std::string_view text, DeviceNumber& device) {
  if (!text.starts_with("dev:")) return false;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data() + 4, end, device.major_number);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':') return false;
  const auto second = std::from_chars(first.ptr + 1, end, device.minor_number);
  return second.ec == std::errc{} && second.ptr == end;
}

Result<TargetNames> parse_target_names(std::string_view text) {
  TargetNames names;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return names;
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    const std::size_t sign = word.rfind('=');
    if (sign == std::string_view::npos || sign == 0 || sign + 1 == word.size())
      return Error{"'" + std::string(word) + "' names no target: write PATH=NAME for each"};
    const std::string_view name = word.substr(sign + 1);
    if (!is_name(name) || name.starts_with('/') || name.starts_with("dev:"))
      return Error{"'" + std::string(name) + "' cannot name a target: give up to " +
                   std::to_string(longest_target_name) + " printable characters, and neither a path nor a device"};
    names.emplace_back(without_slashes_behind(word.substr(0, sign)), name);
  }
}

std::string chosen_name(const TargetNames& names, const std::vector<Mount>& mounts, const Mount& mount,
                        const std::string& name) {
  for (const auto& [what, chosen] : names) {
    const Mount* const meant = what.starts_with('/') ? mount_at(mounts, what) : nullptr;
    if (what == name || (meant && meant->device == mount.device)) return chosen;
  }
  return name;
}

}  // namespace hocket::file_system
