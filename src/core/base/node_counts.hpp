// Numbers of processes or cores by node, as events and people write them: "NODE=NUMBER …". Pure, thread-safe.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace hocket {

// A number of processes or cores on one node.
struct NodeCount {
  std::string node;
  std::int64_t count = 0;

  bool operator==(const NodeCount&) const = default;
};

// Parses a list of counts. A word that is only a node's name has `alone`; if that is 0, it is an error, as is a count
// below 1. An error has the first invalid word as its text.
inline Result<std::vector<NodeCount>> node_counts_of(std::string_view text, std::int64_t alone = 0) {
  std::vector<NodeCount> counts;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(' ', at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::size_t equals = word.rfind('=');
    NodeCount one{std::string{word.substr(0, equals)}, alone};
    if (equals != std::string_view::npos) {
      const std::string_view number = word.substr(equals + 1);
      one.count = 0;
      const auto read = std::from_chars(number.data(), number.data() + number.size(), one.count);
      if (read.ec != std::errc{} || read.ptr != number.data() + number.size()) return Error{std::string{word}};
    }
    if (one.node.empty() || one.count < 1) return Error{std::string{word}};
    counts.push_back(std::move(one));
    at = end;
  }
  return counts;
}

// Returns the counts as `node_counts_of` reads them; "" if that is longer than `most` bytes.
inline std::string text_of(const std::vector<NodeCount>& counts, std::size_t most) {
  std::string text;
  for (const NodeCount& one : counts) {
    text.append(text.empty() ? "" : " ").append(one.node).append("=").append(std::to_string(one.count));
    if (text.size() > most) return {};
  }
  return text;
}

}  // namespace hocket
