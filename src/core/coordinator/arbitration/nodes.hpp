// A pool of list nodes. Thousands of requests come and go each second. Returning each node to the allocator and taking
// another displaces more of the cache than all other work on a request. Pure, not thread-safe.
#pragma once

#include <iterator>
#include <list>
#include <utility>

namespace hocket::coordinator {

// Appends to and removes from lists while recycling their nodes. The pool never shrinks: it holds as many nodes as were
// in use at once.
template <class T>
class Nodes {
 public:
  using NodeList = std::list<T>;

  // Moves the value to the end of the list and returns its place. Constant time.
  typename NodeList::iterator append(NodeList& list, T value) {
    if (spare_.empty()) return list.insert(list.end(), std::move(value));
    spare_.front() = std::move(value);
    list.splice(list.end(), spare_, spare_.begin());
    return std::prev(list.end());
  }
  // Takes the element out of the list and keeps its node, with its old value, for reuse.
  void remove(NodeList& list, typename NodeList::iterator place) { spare_.splice(spare_.begin(), list, place); }

 private:
  NodeList spare_;  // most recently used node first, which is likely still in the cache
};

}  // namespace hocket::coordinator
