#include "model/part_set.hpp"

#include <algorithm>

namespace hocket::model {
namespace {
constexpr std::size_t word_bits = 64;
}  // namespace

const PartSet& PartSet::none() {
  static const PartSet empty = [] {
    PartSet set;
    set.words_ = {0};
    return set;
  }();
  return empty;
}

PartSet PartSet::of(const std::vector<std::size_t>& numbers) {
  PartSet set;
  for (const std::size_t number : numbers) {
    set.words_.resize(std::max(set.words_.size(), number / word_bits + 1));
    set.words_[number / word_bits] |= std::uint64_t{1} << number % word_bits;
  }
  return set;
}

std::uint64_t PartSet::word(std::size_t i) const {
  if (is_whole()) return ~std::uint64_t{0};
  return i < words_.size() ? words_[i] : 0;
}

bool PartSet::has(std::size_t number) const { return (word(number / word_bits) >> number % word_bits & 1) != 0; }

bool PartSet::meets_beyond(const PartSet& own, const PartSet& other) const {
  if (own.is_whole()) return false;
  // Two whole targets share parts without a number, too, which `own` cannot have.
  if (is_whole() && other.is_whole()) return true;
  const std::size_t size = std::max(words_.size(), other.words_.size());
  for (std::size_t i = 0; i < size; ++i) {
    if ((word(i) & other.word(i) & ~own.word(i)) != 0) return true;
  }
  return false;
}

bool PartSet::covers(const PartSet& other) const {
  if (is_whole()) return true;
  if (other.is_whole()) return false;
  for (std::size_t i = 0; i < other.words_.size(); ++i) {
    if ((other.word(i) & ~word(i)) != 0) return false;
  }
  return true;
}

void PartSet::add(const PartSet& other) {
  if (is_whole()) return;
  if (other.is_whole()) {
    words_.clear();
    return;
  }
  words_.resize(std::max(words_.size(), other.words_.size()));
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.word(i);
}

std::optional<PartSet> PartNumbers::set_of(const std::vector<std::string>& names) {
  std::vector<std::size_t> numbers;
  for (const std::string& name : names) {
    const auto known = numbers_.find(name);
    if (known == numbers_.end() && names_.size() >= most_names) return std::nullopt;
    const auto place = known != numbers_.end() ? known : numbers_.emplace(name, names_.size()).first;
    if (known == numbers_.end()) names_.push_back(&place->first);
    numbers.push_back(place->second);
  }
  return PartSet::of(numbers);
}

std::vector<std::string> PartNumbers::names_of(const PartSet& parts) const {
  std::vector<std::string> names;
  if (parts.is_whole()) return names;
  for (std::size_t number = 0; number < names_.size(); ++number) {
    if (parts.has(number)) names.push_back(*names_[number]);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hocket::model
