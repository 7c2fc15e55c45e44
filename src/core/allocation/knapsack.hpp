// The multiple-choice knapsack problem: one item of each class, the largest value in all, weights at most the capacity.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hocket::allocation {

struct Item {
  int weight = 0;          // at least 0
  std::int64_t value = 0;  // sums of all classes must fit
};

struct Choices {
  std::vector<std::size_t> items;  // the number of the item of each class
  int weight = 0;
  std::int64_t value = 0;
};

// Returns the best choice; of equal values, one of the least weight. Nothing if no choice fits. Dynamic programming:
// O(capacity · items) time, O(capacity · classes) memory. Source: GekkoFWD, section 3.1, there O(W · sum of N_i), too.
std::optional<Choices> best_choices(std::span<const std::vector<Item>> classes, int capacity);

}  // namespace hocket::allocation
