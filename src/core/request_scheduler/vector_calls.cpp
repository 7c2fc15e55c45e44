#include "request_scheduler/vector_calls.hpp"

#include <algorithm>

namespace hocket::request_scheduler {

std::vector<VectorCall> vector_calls(std::span<const VectorPart> parts, std::size_t most_parts,
                                     std::int64_t most_bytes) {
  std::vector<VectorCall> calls;
  std::int64_t bytes = 0;  // of the last call
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const VectorPart& part = parts[i];
    const bool follows = i > 0 && part.kind != 0 && part.kind == parts[i - 1].kind && part.length > 0 &&
                         part.at == parts[i - 1].at + parts[i - 1].length;
    if (follows && calls.back().count < most_parts && part.length <= most_bytes - bytes) {
      ++calls.back().count;
      bytes += part.length;
    } else {
      calls.push_back({i, 1});
      bytes = part.length;
    }
  }
  return calls;
}

std::vector<std::int64_t> settled_parts(std::span<const VectorPart> parts, std::int64_t moved) {
  std::vector<std::int64_t> results;
  for (const VectorPart& part : parts) {
    if (moved <= 0) break;
    results.push_back(std::min(moved, part.length));
    moved -= results.back();
  }
  return results;
}

}  // namespace hocket::request_scheduler
