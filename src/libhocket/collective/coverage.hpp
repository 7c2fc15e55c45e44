// Bitmap of the bytes of a file extent that ranks have written into a collective buffer, with one bit per byte. The
// aggregator uses it to write those bytes and no others. It may lie in memory that several processes share.
#pragma once

#include <cstdint>

#include "layout/walk.hpp"

namespace hocket::runtime::collective {

// A view of a bitmap that belongs to somebody else; cheap to copy. Several threads and processes may mark bits at
// once, but all other functions need the marking to be over.
class Coverage {
 public:
  // Number of 64-bit words for an extent of `bytes` bytes.
  static constexpr std::int64_t words_for(std::int64_t bytes) { return (bytes + 63) / 64; }

  Coverage() = default;
  // Uses words_for(span.count()) words, which must outlive this object.
  Coverage(std::uint64_t* words, layout::Extent span) : words_(words), origin_(span.first), count_(span.count()) {}

  // Unmarks all bytes.
  void clear();
  // Marks the bytes that the walk covers. Safe in several threads and processes at once. Precondition: the walk stays
  // within the span.
  void mark(layout::Walk walk);
  // True if every byte of the span is marked.
  bool full() const;
  // Calls `call(Extent)` with the file offsets of each marked run, in order; adjacent runs are one.
  template <class Call>
  void for_each_run(Call call) const {
    for (std::int64_t end = 0;;) {
      const std::int64_t first = find(end, true);
      if (first == count_) return;
      end = find(first, false);
      call(layout::Extent{origin_ + first, origin_ + end});
    }
  }

 private:
  void mark(std::int64_t first, std::int64_t count);
  // Returns the first bit at or after `from` that is in the wanted state, or count_ if there is none.
  std::int64_t find(std::int64_t from, bool marked) const;

  std::uint64_t* words_ = nullptr;
  std::int64_t origin_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace hocket::runtime::collective
