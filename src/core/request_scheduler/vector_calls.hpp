// Which calls of a batch become one vector system call (preadv2, pwritev2), and which of them its result settles. Pure.
//
// A merged call must give each of its parts what the part's own call would have given. So only calls with an explicit
// offset that follow one another without gap or overlap are merged. Where a vector call fails or ends early, what it
// did not do is carried out again part by part: then each part has its own error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hocket::request_scheduler {

// A call, with offset and length in bytes.
struct VectorPart {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::uint64_t kind = 0;  // calls of one kind may be merged; 0: never
};

// So many parts that follow each other are one system call.
struct VectorCall {
  std::size_t first = 0;
  std::size_t count = 1;
  bool operator==(const VectorCall&) const = default;
};

// Divides the parts, which are sorted by offset, into calls of at most `most_parts` parts and `most_bytes` bytes. A
// part that is larger is a call of its own.
std::vector<VectorCall> vector_calls(std::span<const VectorPart> parts, std::size_t most_parts,
                                     std::int64_t most_bytes);

// Returns the results of the first parts of a call that has moved `moved` bytes, or failed (negative): those that it
// has carried out, and the one in which it ended. The parts after these were not touched.
std::vector<std::int64_t> settled_parts(std::span<const VectorPart> parts, std::int64_t moved);

}  // namespace hocket::request_scheduler
