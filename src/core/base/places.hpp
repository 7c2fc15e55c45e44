// A ProcessPlace is the node and core of a process, as people, events and hocketd write it: "NODE[:CORE] …", one word
// for each process. Pure, thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace hocket {

struct ProcessPlace {
  std::string node;
  std::int64_t core = -1;  // -1: any
};

// Parses a list of places. An error has the first invalid word as its text.
inline Result<std::vector<ProcessPlace>> places_of(std::string_view text) {
  constexpr std::size_t most_digits = 6;
  std::vector<ProcessPlace> places;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(' ', at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t colon = word.find(':');
    ProcessPlace place{std::string{word.substr(0, colon)}};
    if (colon != std::string_view::npos) {
      const std::string core{word.substr(colon + 1)};
      const bool is_number = core.find_first_not_of("0123456789") == std::string::npos;
      if (core.empty() || core.size() > most_digits || !is_number) return Error{std::string{word}};
      place.core = std::stol(core);
    }
    if (place.node.empty()) return Error{std::string{word}};
    places.push_back(std::move(place));
    at = end;
  }
  return places;
}

}  // namespace hocket
