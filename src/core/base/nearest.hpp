// Error messages suggest the known word that is nearest to an unknown one. Pure, thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace hocket {

// Returns the Levenshtein distance: insertions, deletions and replacements of single characters.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// Returns the first of the nearest known words; "" if none is known. Only the first 64 characters of `word` are
// compared: it comes from a user, and its cost must be bounded.
inline std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr std::size_t longest = 64;
  const auto distance = [&](std::string_view k) { return edit_distance(word.substr(0, longest), k); };
  const auto found = std::min_element(
      known.begin(), known.end(), [&](std::string_view a, std::string_view b) { return distance(a) < distance(b); });
  return found == known.end() ? std::string_view{} : *found;
}

}  // namespace hocket
