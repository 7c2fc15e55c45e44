// A priority queue of small numbers (0 … n - 1), each with a key that can be changed or erased. The simulator's event
// queue and the transfers of a target need this: their times change with every event. All changes cost O(log n).
// Equal keys order by number, so the result does not depend on the order of insertion. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hocket::sim {

// A 4-ary min-heap in a flat array, with a table that gives the place of each number.
template <class Key>
class IndexedHeap {
 public:
  using HeapNumber = std::uint32_t;

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  bool contains(HeapNumber number) const { return number < place_.size() && place_[number] != nowhere; }
  // Return the smallest key and its number. Precondition of both: the heap is not empty.
  const Key& top_key() const { return heap_.front().first; }
  HeapNumber top() const { return heap_.front().second; }

  // Inserts the number, or changes its key.
  void set(HeapNumber number, Key key) {
    if (number >= place_.size()) place_.resize(number + 1, nowhere);
    std::size_t at = place_[number];
    if (at == nowhere) {
      at = heap_.size();
      heap_.emplace_back();
    }
    HeapEntry entry{std::move(key), number};
    if (at > 0 && entry < heap_[(at - 1) / children]) {
      rise(at, std::move(entry));
    } else {
      sink(at, std::move(entry));
    }
  }

  // Erases the number if it is in the heap.
  void erase(HeapNumber number) {
    if (!contains(number)) return;
    const std::size_t at = place_[number];
    place_[number] = nowhere;
    HeapEntry last = std::move(heap_.back());
    heap_.pop_back();
    if (at == heap_.size()) return;
    if (at > 0 && last < heap_[(at - 1) / children]) {
      rise(at, std::move(last));
    } else {
      sink(at, std::move(last));
    }
  }

 private:
  using HeapEntry = std::pair<Key, HeapNumber>;
  static constexpr std::size_t children = 4;
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  void put(std::size_t at, HeapEntry entry) {
    place_[entry.second] = static_cast<std::uint32_t>(at);
    heap_[at] = std::move(entry);
  }
  // Moves `entry` from the empty place `at` towards the root until its parent is not larger.
  void rise(std::size_t at, HeapEntry entry) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / children;
      if (!(entry < heap_[parent])) break;
      put(at, std::move(heap_[parent]));
      at = parent;
    }
    put(at, std::move(entry));
  }
  // Moves `entry` from the empty place `at` towards the leaves until no child is smaller.
  void sink(std::size_t at, HeapEntry entry) {
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

  std::vector<HeapEntry> heap_;
  std::vector<std::uint32_t> place_;  // place of each number in `heap_`, or `nowhere`
};

}  // namespace hocket::sim
