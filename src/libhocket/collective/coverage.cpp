#include "collective/coverage.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

namespace hocket::runtime::collective {

void Coverage::clear() { std::fill_n(words_, words_for(count_), 0); }

void Coverage::mark(layout::Walk walk) {
  while (walk.left() > 0) {
    const layout::Strip strip = walk.next();
    std::int64_t at = strip.at - origin_;
    for (std::int64_t i = 0; i < strip.count; ++i, at += strip.stride) mark(at, strip.length);
  }
}

// Marks one run. A word that the run fills belongs to this run alone and needs no atomic operation; in the first and
// last word other ranks may be marking bits at the same time.
void Coverage::mark(std::int64_t first, std::int64_t count) {
  while (count > 0) {
    const std::int64_t bit = first % 64, here = std::min<std::int64_t>(count, 64 - bit);
    std::uint64_t& word = words_[first / 64];
    if (here == 64)
      word = ~std::uint64_t{0};
    else
      std::atomic_ref(word).fetch_or(((std::uint64_t{1} << here) - 1) << bit, std::memory_order_relaxed);
    first += here;
    count -= here;
  }
}

bool Coverage::full() const {
  // Combines all full words without a branch, then looks at the last, partial word.
  std::uint64_t all = ~std::uint64_t{0};
  for (std::int64_t i = 0; i < count_ / 64; ++i) all &= words_[i];
  return all == ~std::uint64_t{0} && find(count_ / 64 * 64, false) == count_;
}

std::int64_t Coverage::find(std::int64_t from, bool marked) const {
  while (from < count_) {
    const std::uint64_t word = words_[from / 64];
    // A search for an unmarked bit is a search for a marked one in the inverted word.
    const std::uint64_t left = (marked ? word : ~word) >> (from % 64);
    if (left != 0) return std::min(from + std::countr_zero(left), count_);
    from += 64 - from % 64;
  }
  return count_;
}

}  // namespace hocket::runtime::collective
