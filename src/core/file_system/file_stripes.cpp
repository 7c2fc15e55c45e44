#include "file_system/file_stripes.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hocket::file_system {
namespace {

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
constexpr std::size_t stripe_bytes_at = 24;
constexpr std::size_t stripe_count_at = 28;
constexpr std::size_t v1_header = 32;
constexpr std::size_t v3_header = 48;
constexpr std::size_t object_size = 24;
constexpr std::size_t object_index_at = 20;
constexpr std::size_t entry_count_at = 14;
constexpr std::size_t composite_header = 32;
constexpr std::size_t entry_size = 48;
constexpr std::size_t entry_flags_at = 4;
constexpr std::size_t entry_begin_at = 8;
constexpr std::size_t entry_end_at = 16;
constexpr std::size_t entry_offset_at = 24;
constexpr std::size_t entry_bytes_at = 28;

using Bytes = std::span<const std::byte>;

// Returns the number at that place; nothing if the bytes end before.
template <class T>
std::optional<T> number_at(Bytes bytes, std::size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Reads one layout that is no composite. Returns false if the data are on no server, or it is no layout.
bool read_component(Bytes bytes, StripedExtent& extent) {
  const auto magic = number_at<std::uint32_t>(bytes, 0);
  const auto pattern = number_at<std::uint32_t>(bytes, pattern_at);
  const auto count = number_at<std::uint16_t>(bytes, stripe_count_at);
  if (!count || (*magic != lov_v1 && *magic != lov_v3 && *magic != lov_specific)) return false;
  if ((*pattern & pattern_released) != 0) return false;
  extent.on_metadata = (*pattern & pattern_mdt) != 0;
  if (extent.on_metadata) return true;
  extent.stripe_bytes = *number_at<std::uint32_t>(bytes, stripe_bytes_at);
  const std::size_t header = *magic == lov_v1 ? v1_header : v3_header;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto index = number_at<std::uint32_t>(bytes, header + i * object_size + object_index_at);
    if (!index) return false;
    extent.servers.push_back(*index);
  }
  return *count > 0;
}

// Lustre writes "to the end of the file" as the largest number.
std::int64_t offset_of(std::uint64_t number) {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min<std::uint64_t>(number, largest));
}

// A component without objects gets some when the file grows into it: on which OSTs is not known before.
bool read_composite(Bytes bytes, FileStripes& stripes) {
  const auto count = number_at<std::uint16_t>(bytes, entry_count_at);
  if (!count) return false;
  for (std::size_t i = 0; i < *count; ++i) {
    const std::size_t entry = composite_header + i * entry_size;
    const auto flags = number_at<std::uint32_t>(bytes, entry + entry_flags_at);
    const auto begin = number_at<std::uint64_t>(bytes, entry + entry_begin_at);
    const auto end = number_at<std::uint64_t>(bytes, entry + entry_end_at);
    const auto offset = number_at<std::uint32_t>(bytes, entry + entry_offset_at);
    const auto size = number_at<std::uint32_t>(bytes, entry + entry_bytes_at);
    if (!size) return false;
    StripedExtent extent;
    extent.begin = offset_of(*begin);
    extent.end = offset_of(*end);
    if ((*flags & component_has_objects) != 0) {
      if (*offset > bytes.size() || bytes.size() - *offset < *size) return false;
      if (!read_component(bytes.subspan(*offset, *size), extent)) return false;
    }
    stripes.extents.push_back(std::move(extent));
  }
  return *count > 0;
}

}  // namespace

const StripedExtent* extent_at(const FileStripes& stripes, std::int64_t offset) {
  const auto found = std::ranges::find_if(
      stripes.extents, [offset](const StripedExtent& one) { return one.begin <= offset && offset < one.end; });
  return found == stripes.extents.end() ? nullptr : &*found;
}

std::optional<std::uint32_t> server_at(const FileStripes& stripes, std::int64_t offset) {
  const StripedExtent* const extent = extent_at(stripes, offset);
  if (extent == nullptr || extent->servers.empty()) return std::nullopt;
  if (extent->servers.size() == 1) return extent->servers.front();
  if (extent->stripe_bytes <= 0) return std::nullopt;
  return extent->servers[static_cast<std::size_t>(offset / extent->stripe_bytes) % extent->servers.size()];
}

std::optional<FileStripes> lustre_stripes(std::span<const std::byte> attribute) {
  FileStripes stripes;
  const auto magic = number_at<std::uint32_t>(attribute, 0);
  if (magic == lov_composite) {
    if (!read_composite(attribute, stripes)) return std::nullopt;
  } else if (!read_component(attribute, stripes.extents.emplace_back())) {
    return std::nullopt;
  }
  return stripes;
}

}  // namespace hocket::file_system
