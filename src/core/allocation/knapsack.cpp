#include "allocation/knapsack.hpp"

#include <algorithm>
#include <limits>

namespace hocket::allocation {
namespace {

constexpr std::int64_t impossible = std::numeric_limits<std::int64_t>::min() / 2;

// The best values of the classes so far by exactly used capacity, and the choice of each class that gives them.
class Table {
 public:
  Table(std::size_t classes, int capacity)
      : width_(static_cast<std::size_t>(capacity) + 1), best_(width_, impossible), picked_(classes * width_) {
    best_[0] = 0;
  }

  void add(std::size_t number, const std::vector<Item>& items) {
    std::vector<std::int64_t> next(width_, impossible);
    const std::span<std::uint32_t> picked = std::span{picked_}.subspan(number * width_, width_);
    for (std::size_t item = 0; item < items.size(); ++item) {
      const auto weight = static_cast<std::size_t>(items[item].weight);
      const std::int64_t value = items[item].value;
      for (std::size_t used = weight; used < width_; ++used) {
        const std::int64_t sum = best_[used - weight] + value;
        if (sum <= next[used]) continue;
        next[used] = sum;
        picked[used] = static_cast<std::uint32_t>(item);
      }
    }
    // An impossible value stays so, whatever was added to it.
    for (std::int64_t& value : next) value = value < impossible / 2 ? impossible : value;
    best_ = std::move(next);
  }

  std::optional<Choices> choices(std::span<const std::vector<Item>> classes) const {
    const auto best = std::max_element(best_.begin(), best_.end());  // the first of equals: the least weight
    if (*best == impossible) return std::nullopt;
    auto used = static_cast<std::size_t>(best - best_.begin());
    Choices found{std::vector<std::size_t>(classes.size()), static_cast<int>(used), *best};
    for (std::size_t number = classes.size(); number-- > 0;) {
      const std::size_t item = picked_[number * width_ + used];
      found.items[number] = item;
      used -= static_cast<std::size_t>(classes[number][item].weight);
    }
    return found;
  }

 private:
  std::size_t width_;
  std::vector<std::int64_t> best_;
  std::vector<std::uint32_t> picked_;
};

// The table need be no wider than what all classes can use.
int usable(std::span<const std::vector<Item>> classes, int capacity) {
  std::int64_t most = 0;
  for (const std::vector<Item>& items : classes) {
    int heaviest = 0;
    for (const Item& item : items)
      if (item.weight <= capacity) heaviest = std::max(heaviest, item.weight);
    most += heaviest;
  }
  return static_cast<int>(std::min<std::int64_t>(capacity, most));
}

}  // namespace

std::optional<Choices> best_choices(std::span<const std::vector<Item>> classes, int capacity) {
  Table table(classes.size(), usable(classes, capacity));
  for (std::size_t number = 0; number < classes.size(); ++number) table.add(number, classes[number]);
  return table.choices(classes);
}

}  // namespace hocket::allocation
