#include "session/file_layout.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/descriptor.hpp"
#include "event/part_names.hpp"
#include "session/target.hpp"

namespace hocket::runtime {
namespace {

constexpr std::uint64_t lustre_magic = 0x0bd00bd0;  // of statfs
constexpr std::uint64_t beegfs_magic = 0x19830326;
constexpr std::size_t largest_attribute = 65536;  // XATTR_SIZE_MAX

// The layouts of the attribute (lustre_user.h), in the byte order of the processor.
constexpr std::uint32_t lov_v1 = 0x0bd10bd0;
constexpr std::uint32_t lov_v3 = 0x0bd30bd0;
constexpr std::uint32_t lov_specific = 0x0bd50bd0;
constexpr std::uint32_t lov_composite = 0x0bd60bd0;
constexpr std::uint32_t pattern_released = 0x80000000;
constexpr std::uint32_t pattern_mdt = 0x100;
constexpr std::uint32_t component_has_objects = 0x10;

// Offsets and sizes in bytes.
constexpr std::size_t pattern_at = 4;
constexpr std::size_t stripe_count_at = 28;
constexpr std::size_t v1_header = 32;
constexpr std::size_t v3_header = 48;
constexpr std::size_t object_size = 24;
constexpr std::size_t object_index_at = 20;
constexpr std::size_t entry_count_at = 14;
constexpr std::size_t composite_header = 32;
constexpr std::size_t entry_size = 48;
constexpr std::size_t entry_flags_at = 4;
constexpr std::size_t entry_offset_at = 24;
constexpr std::size_t entry_bytes_at = 28;

constexpr unsigned beegfs_mirrored = 3;
constexpr int beegfs_type = 'f';
constexpr int beegfs_info_number = 25;
constexpr int beegfs_target_number = 26;

using Bytes = std::span<const std::byte>;

// Returns the number at that place; nothing if the bytes end before.
template <class T>
std::optional<T> number_at(Bytes bytes, std::size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Adds the parts of one layout that is no composite. Returns false if it has none, or is none.
bool add_component(Bytes bytes, PartNames& parts) {
  const auto magic = number_at<std::uint32_t>(bytes, 0);
  const auto pattern = number_at<std::uint32_t>(bytes, pattern_at);
  const auto count = number_at<std::uint16_t>(bytes, stripe_count_at);
  if (!count || (*magic != lov_v1 && *magic != lov_v3 && *magic != lov_specific)) return false;
  if ((*pattern & pattern_released) != 0) return false;
  if ((*pattern & pattern_mdt) != 0) {
    parts.emplace_back("mdt");
    return true;
  }
  const std::size_t header = *magic == lov_v1 ? v1_header : v3_header;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto index = number_at<std::uint32_t>(bytes, header + i * object_size + object_index_at);
    if (!index) return false;
    parts.push_back("ost" + std::to_string(*index));
  }
  return *count > 0;
}

// Adds the parts of all components. A component without objects gets some when the file grows into it: on which OSTs is
// not known before.
bool add_composite(Bytes bytes, PartNames& parts) {
  const auto count = number_at<std::uint16_t>(bytes, entry_count_at);
  if (!count) return false;
  for (std::size_t i = 0; i < *count; ++i) {
    const std::size_t entry = composite_header + i * entry_size;
    const auto flags = number_at<std::uint32_t>(bytes, entry + entry_flags_at);
    const auto offset = number_at<std::uint32_t>(bytes, entry + entry_offset_at);
    const auto size = number_at<std::uint32_t>(bytes, entry + entry_bytes_at);
    if (!size || (*flags & component_has_objects) == 0) return false;
    if (*offset > bytes.size() || bytes.size() - *offset < *size) return false;
    if (!add_component(bytes.subspan(*offset, *size), parts)) return false;
  }
  return *count > 0;
}

// Returns the names, sorted and each once; nothing if a request may not name as many.
std::optional<PartNames> usable(PartNames parts) {
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  if (parts.empty() || parts.size() > event::most_parts) return std::nullopt;
  return parts;
}

// Returns the number of the file's kind of file system; 0 if the system refuses to say.
std::uint64_t magic_of(const std::string& path) {
  struct statfs system {};
  if (path.empty() || statfs(path.c_str(), &system) != 0) return 0;
  return static_cast<std::uint64_t>(system.f_type) & 0xffffffffU;
}

std::optional<PartNames> on_lustre(const std::string& path) {
  std::vector<std::byte> attribute(largest_attribute);
  const ssize_t size = getxattr(path.c_str(), "lustre.lov", attribute.data(), attribute.size());
  if (size < 0) return std::nullopt;
  return lustre_layout({attribute.data(), static_cast<std::size_t>(size)});
}

std::optional<PartNames> on_beegfs(const std::string& path) {
  const Fd file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (!file) return std::nullopt;
  return beegfs_layout([&](unsigned long request, void* argument) { return ioctl(file.get(), request, argument); });
}

}  // namespace

const unsigned long beegfs_stripe_info = _IOR(beegfs_type, beegfs_info_number, BeegfsStripeInfo);
const unsigned long beegfs_stripe_target = _IOR(beegfs_type, beegfs_target_number, BeegfsStripeTarget);

std::optional<PartNames> lustre_layout(std::span<const std::byte> attribute) {
  PartNames parts;
  const auto magic = number_at<std::uint32_t>(attribute, 0);
  const bool known = magic == lov_composite ? add_composite(attribute, parts) : add_component(attribute, parts);
  return known ? usable(std::move(parts)) : std::nullopt;
}

std::optional<PartNames> beegfs_layout(AskFileSystem ask) {
  BeegfsStripeInfo info{};
  if (ask(beegfs_stripe_info, &info) != 0 || info.targets > event::most_parts) return std::nullopt;
  const char* const kind = info.pattern == beegfs_mirrored ? "mirror" : "target";
  PartNames parts;
  for (unsigned short i = 0; i < info.targets; ++i) {
    BeegfsStripeTarget stripe{};
    stripe.index = i;
    if (ask(beegfs_stripe_target, &stripe) != 0) return std::nullopt;
    parts.push_back(kind + std::to_string(stripe.target));
  }
  return usable(std::move(parts));
}

bool tells_layouts(std::string_view file) {
  const std::uint64_t magic = magic_of(std::string(without_prefix(file)));
  return magic == lustre_magic || magic == beegfs_magic;
}

std::optional<PartNames> layout_of(std::string_view file) {
  const std::string path(without_prefix(file));
  const std::uint64_t magic = magic_of(path);
  if (magic == lustre_magic) return on_lustre(path);
  if (magic == beegfs_magic) return on_beegfs(path);
  return std::nullopt;
}

}  // namespace hocket::runtime
