#include "runtime/io/coverage.hpp"

#include <algorithm>
#include <bit>

namespace hocket::runtime::io {

void Coverage::reset(layout::Interval span) {
  origin_ = span.first;
  count_ = span.count();
  bits_.assign(static_cast<std::size_t>((count_ + 63) / 64), 0);
}

void Coverage::mark(layout::Walk walk) {
  while (walk.left() > 0) {
    const layout::Strip strip = walk.next();
    std::int64_t at = strip.at - origin_;
    for (std::int64_t i = 0; i < strip.count; ++i, at += strip.stride) mark(at, strip.length);
  }
}

void Coverage::mark(std::int64_t first, std::int64_t count) {
  while (count > 0) {
    const std::int64_t bit = first % 64, here = std::min<std::int64_t>(count, 64 - bit);
    const std::uint64_t mask = here == 64 ? ~std::uint64_t{0} : ((std::uint64_t{1} << here) - 1) << bit;
    bits_[static_cast<std::size_t>(first / 64)] |= mask;
    first += here;
    count -= here;
  }
}

std::int64_t Coverage::find(std::int64_t from, bool marked) const {
  while (from < count_) {
    const std::uint64_t word = bits_[static_cast<std::size_t>(from / 64)];
    const std::uint64_t left = (marked ? word : ~word) >> (from % 64);
    if (left != 0) return std::min(from + std::countr_zero(left), count_);
    from += 64 - from % 64;
  }
  return count_;
}

}  // namespace hocket::runtime::io
