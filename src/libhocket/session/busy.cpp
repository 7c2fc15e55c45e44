#include "session/busy.hpp"

#include <algorithm>

namespace hocket::runtime {

void BusyIntervals::add(Time start, Time end) {
  if (end <= start) return;
  std::size_t at = count_;
  while (at > 0 && intervals_[at - 1].start > start) --at;
  std::move_backward(intervals_.begin() + at, intervals_.begin() + count_, intervals_.begin() + count_ + 1);
  intervals_[at] = {start, end, end - start};
  ++count_;
  if (at > 0 && intervals_[at].start - intervals_[at - 1].end < close) merge(--at);
  while (at + 1 < count_ && intervals_[at + 1].start - intervals_[at].end < close) merge(at);
  if (count_ <= most) return;
  std::size_t closest = 0;
  const auto gap = [this](std::size_t i) { return intervals_[i + 1].start - intervals_[i].end; };
  for (std::size_t i = 1; i + 1 < count_; ++i)
    if (gap(i) < gap(closest)) closest = i;
  merge(closest);
}

// Merges interval `i` with the next one. Time in which both intervals lie is taken off once.
void BusyIntervals::merge(std::size_t i) {
  BusyInterval& one = intervals_[i];
  const BusyInterval& next = intervals_[i + 1];
  const Duration both = std::max(Duration{}, std::min(one.end, next.end) - next.start);
  one.end = std::max(one.end, next.end);
  one.busy = std::min(one.busy + next.busy - std::min(both, next.busy), one.end - one.start);
  std::move(intervals_.begin() + i + 2, intervals_.begin() + count_, intervals_.begin() + i + 1);
  --count_;
}

std::string BusyIntervals::text(Time since) const {
  std::string text;
  for (std::size_t i = 0; i < count_; ++i) {
    const BusyInterval& one = intervals_[i];
    const Duration length = one.end - one.start;
    text +=
        (text.empty() ? "" : " ") + std::to_string((one.start - since).count()) + ":" + std::to_string(length.count());
    if (one.busy < length) text += ":" + std::to_string(one.busy.count());
  }
  return text;
}

}  // namespace hocket::runtime
