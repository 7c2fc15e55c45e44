// The names of a target's parts (storage servers, OSTs), as hints, layouts and START_IO write them: separated by
// commas. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hocket::event {

// Limits of one set. A request that names more uses the whole target.
inline constexpr std::size_t most_parts = 64;
inline constexpr std::size_t longest_part_name = 64;  // bytes

// Returns the names, sorted and each once; spaces around a name are left out. Names are printable ASCII. An error says
// what is wrong, e.g. "a name is empty".
Result<std::vector<std::string>> part_names_of(std::string_view text);

// Joins the names as `part_names_of` takes them.
std::string text_of_parts(const std::vector<std::string>& names);

}  // namespace hocket::event
