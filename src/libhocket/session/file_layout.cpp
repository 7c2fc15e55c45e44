#include "session/file_layout.hpp"

#include <algorithm>

#include "event/part_names.hpp"
#include "file_system/ask_stripes.hpp"
#include "session/target.hpp"

namespace hocket::runtime {
namespace {

using file_system::FileStripes;
using file_system::ServerKind;
using file_system::StripedExtent;

const char* word_of(ServerKind kind) {
  if (kind == ServerKind::ost) return "ost";
  return kind == ServerKind::mirror ? "mirror" : "target";
}

}  // namespace

std::optional<PartNames> part_names(const FileStripes& stripes) {
  PartNames parts;
  for (const StripedExtent& extent : stripes.extents) {
    if (extent.on_metadata) parts.emplace_back("mdt");
    if (extent.servers.empty() && !extent.on_metadata) return std::nullopt;
    for (const std::uint32_t number : extent.servers) parts.push_back(word_of(stripes.kind) + std::to_string(number));
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  if (parts.empty() || parts.size() > event::most_parts) return std::nullopt;
  return parts;
}

bool tells_layouts(std::string_view file) { return file_system::tells_stripes(std::string(without_prefix(file))); }

std::optional<PartNames> layout_of(std::string_view file) {
  const auto stripes = file_system::stripes_of(std::string(without_prefix(file)));
  return stripes ? part_names(*stripes) : std::nullopt;
}

}  // namespace hocket::runtime
