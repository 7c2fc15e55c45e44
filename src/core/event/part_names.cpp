#include "event/part_names.hpp"

#include <algorithm>

namespace hocket::event {
namespace {

std::string_view trimmed(std::string_view word) {
  const std::size_t first = word.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return word.substr(first, word.find_last_not_of(' ') - first + 1);
}

bool is_printable(char one) { return one > ' ' && one <= '~'; }

}  // namespace

Result<std::vector<std::string>> part_names_of(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view name = trimmed(text.substr(at, end - at));
    if (name.empty()) return Error{"a name is empty"};
    if (name.size() > longest_part_name)
      return Error{"a name has " + std::to_string(name.size()) + " bytes, more than " +
                   std::to_string(longest_part_name)};
    if (!std::all_of(name.begin(), name.end(), is_printable))
      return Error{"a name has a space, or a character that is not printable ASCII"};
    if (names.size() >= most_parts) return Error{"it has more than " + std::to_string(most_parts) + " names"};
    names.emplace_back(name);
    at = end + 1;
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string text_of_parts(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ",").append(name);
  return text;
}

}  // namespace hocket::event
