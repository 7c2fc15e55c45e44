// A heap of small numbers (0 … n - 1) by a key each, in which a number's key can be changed or taken out. All changes
// cost O(log n); of equal keys the smaller number comes first, so that nothing depends on the order of insertion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hocket::sim {

template <class Key>
class IndexedHeap {
 public:
  using Number = std::uint32_t;

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  bool contains(Number number) const { return number < place_.size() && place_[number] != nowhere; }
  // Precondition of both: not empty.
  const Key& top_key() const { return heap_.front().first; }
  Number top() const { return heap_.front().second; }

  // Puts the number in, or gives it another key.
  void set(Number number, Key key) {
    if (number >= place_.size()) place_.resize(number + 1, nowhere);
    std::size_t at = place_[number];
    if (at == nowhere) {
      at = heap_.size();
      heap_.emplace_back();
    }
    Entry entry{std::move(key), number};
    if (at > 0 && entry < heap_[(at - 1) / children]) {
      rise(at, std::move(entry));
    } else {
      sink(at, std::move(entry));
    }
  }

  // Takes the number out, where it is in.
  void erase(Number number) {
    if (!contains(number)) return;
    const std::size_t at = place_[number];
    place_[number] = nowhere;
    Entry last = std::move(heap_.back());
    heap_.pop_back();
    if (at == heap_.size()) return;
    if (at > 0 && last < heap_[(at - 1) / children]) {
      rise(at, std::move(last));
    } else {
      sink(at, std::move(last));
    }
  }

 private:
  using Entry = std::pair<Key, Number>;
  static constexpr std::size_t children = 4;
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  void put(std::size_t at, Entry entry) {
    place_[entry.second] = static_cast<std::uint32_t>(at);
    heap_[at] = std::move(entry);
  }
  void rise(std::size_t at, Entry entry) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / children;
      if (!(entry < heap_[parent])) break;
      put(at, std::move(heap_[parent]));
      at = parent;
    }
    put(at, std::move(entry));
  }
  void sink(std::size_t at, Entry entry) {
    while (true) {
      const std::size_t first = at * children + 1;
      if (first >= heap_.size()) break;
      std::size_t least = first;
      for (std::size_t i = first + 1; i < heap_.size() && i < first + children; ++i) {
        if (heap_[i] < heap_[least]) least = i;
      }
      if (!(heap_[least] < entry)) break;
      put(at, std::move(heap_[least]));
      at = least;
    }
    put(at, std::move(entry));
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> place_;  // of each number in heap_
};

}  // namespace hocket::sim
