// Which bytes of an interval of a file there are data for: one bit a byte.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/walk.hpp"

namespace hocket::runtime::io {

class Coverage {
 public:
  // Of nothing yet.
  void reset(layout::Interval span);
  // Precondition: the walk stays within the span.
  void mark(layout::Walk walk);
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

  std::int64_t origin_ = 0;
  std::int64_t count_ = 0;
  std::vector<std::uint64_t> bits_;
};

}  // namespace hocket::runtime::io
