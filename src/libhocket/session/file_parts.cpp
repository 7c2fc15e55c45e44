#include "session/file_parts.hpp"

#include <algorithm>

#include "event/part_names.hpp"

namespace hocket::runtime {
namespace {
constexpr std::size_t longest_shown = 200;  // bytes of a value
}  // namespace

FileParts choose_parts(const std::optional<std::string>& hint, const std::optional<PartNames>& layout) {
  if (!hint) return {layout ? event::text_of_parts(*layout) : std::string{}};
  const auto names = event::part_names_of(*hint);
  if (!names) return {*hint, names.error().text};
  const auto is_unknown = [&](const std::string& name) {
    return layout && !std::binary_search(layout->begin(), layout->end(), name);
  };
  const auto unknown = std::find_if(names.value().begin(), names.value().end(), is_unknown);
  if (unknown == names.value().end()) return {event::text_of_parts(names.value())};
  return {*hint, "the file is not on '" + *unknown + "', but on " + event::text_of_parts(*layout)};
}

std::string ignored_line(const FileParts& parts, const std::string& key, const std::string& file,
                         const std::string& target) {
  return key + "=" + parts.names.substr(0, longest_shown) + (file.empty() ? "" : " of " + file) +
         " is ignored: " + parts.error.substr(0, longest_shown) + "; its I/O uses all of " + target;
}

}  // namespace hocket::runtime
