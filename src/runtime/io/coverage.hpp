// Which bytes of an interval of a file there are data for: one bit a byte.
#pragma once

#include <cstdint>

#include "layout/walk.hpp"

namespace hocket::runtime::io {

class Coverage {
 public:
  // Words for intervals of so many bytes.
  static constexpr std::int64_t words_for(std::int64_t bytes) { return (bytes + 63) / 64; }

  Coverage() = default;
  // Over words that live as long, and as many as the interval needs.
  Coverage(std::uint64_t* words, layout::Interval span) : words_(words), origin_(span.first), count_(span.count()) {}

  // Of nothing.
  void clear();
  // Several may mark at once, in several processes too. Precondition: the walk stays within the span.
  void mark(layout::Walk walk);
  // Every byte is marked.
  bool full() const;
  // The runs that are marked, in order: `call(Interval)`; those that touch are one.
  template <class Call>
  void for_each_run(Call call) const {
    for (std::int64_t end = 0;;) {
      const std::int64_t first = find(end, true);
      if (first == count_) return;
      end = find(first, false);
      call(layout::Interval{origin_ + first, origin_ + end});
    }
  }

 private:
  void mark(std::int64_t first, std::int64_t count);
  // The first bit at or behind `from` that is as wanted; count_ if none is.
  std::int64_t find(std::int64_t from, bool marked) const;

  std::uint64_t* words_ = nullptr;
  std::int64_t origin_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace hocket::runtime::io
