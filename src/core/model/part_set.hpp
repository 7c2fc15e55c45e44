// A PartSet says which parts of a target somebody uses: some of its storage servers or OSTs, or the whole target.
//
//   ost1, ost2   meets   ost2, ost3   and the whole target, but not   ost3
//
// Parts are numbered by PartNumbers, of which each target in use has one. An operation costs as much as there are
// numbers / 64; with whole targets it costs next to nothing. Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hocket::model {

class PartSet {
 public:
  PartSet() = default;  // the whole target
  // Returns the set of these parts. Precondition: there is one.
  static PartSet of(const std::vector<std::size_t>& numbers);

  bool is_whole() const { return words_.empty(); }
  bool has(std::size_t number) const;
  // True if a part is in both sets.
  bool meets(const PartSet& other) const { return is_whole() || other.is_whole() || meets_beyond(none(), other); }
  // True if a part that is in both sets is not in `own`.
  bool meets_beyond(const PartSet& own, const PartSet& other) const;
  // True if all parts of the other set are in this one.
  bool covers(const PartSet& other) const;
  void add(const PartSet& other);
  bool operator==(const PartSet&) const = default;

 private:
  static const PartSet& none();  // the empty set, which no caller sees
  std::uint64_t word(std::size_t i) const;

  std::vector<std::uint64_t> words_;  // a bit for each part, without words of 0 at the end; empty: the whole target
};

// Numbers the names of a target's parts in the order in which they come.
class PartNumbers {
 public:
  // Names come from applications, so their number is bounded.
  static constexpr std::size_t most_names = 4096;

  // Returns the set of these names, and numbers new ones; nothing if there would be more than `most_names`.
  std::optional<PartSet> set_of(const std::vector<std::string>& names);
  // Returns the names of the set, sorted; none for the whole target.
  std::vector<std::string> names_of(const PartSet& parts) const;

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<const std::string*> names_;  // keys of `numbers_`
};

}  // namespace hocket::model
