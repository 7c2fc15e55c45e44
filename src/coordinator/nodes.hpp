// Nodes of lists that are used again: thousands of requests come and go each second, and to give each back to the
// allocator and take another one costs more of the cache than all that is done with it.
#pragma once

#include <iterator>
#include <list>
#include <utility>

namespace hocket::coordinator {

template <class T>
class Nodes {
 public:
  using List = std::list<T>;

  // The value goes to the end of the list.
  typename List::iterator append(List& list, T value) {
    if (spare_.empty()) return list.insert(list.end(), std::move(value));
    spare_.front() = std::move(value);
    list.splice(list.end(), spare_, spare_.begin());
    return std::prev(list.end());
  }
  void remove(List& list, typename List::iterator place) { spare_.splice(spare_.begin(), list, place); }

 private:
  List spare_;  // the one that was used last first
};

}  // namespace hocket::coordinator
