// A ShortVector is a vector that nearly always has one element. It stores this one inside. That saves an allocation,
// and another place in memory to fetch. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace hocket {

// Pointers to elements stay valid until the next change. T must be copyable and default-constructible.
template <class T>
class ShortVector {
 public:
  ShortVector() = default;
  ShortVector(const ShortVector& other)
      : many_(other.many_ ? std::make_unique<std::vector<T>>(*other.many_) : nullptr),
        one_(other.one_),
        has_one_(other.has_one_) {}
  ShortVector(ShortVector&&) noexcept = default;
  ShortVector& operator=(const ShortVector& other) { return *this = ShortVector{other}; }
  ShortVector& operator=(ShortVector&&) noexcept = default;
  ~ShortVector() = default;

  T* begin() { return many_ ? many_->data() : &one_; }
  T* end() { return begin() + size(); }
  const T* begin() const { return many_ ? many_->data() : &one_; }
  const T* end() const { return begin() + size(); }

  std::size_t size() const { return many_ ? many_->size() : has_one_; }
  bool empty() const { return size() == 0; }
  T& operator[](std::size_t i) { return begin()[i]; }
  const T& operator[](std::size_t i) const { return begin()[i]; }
  // Precondition for both: not empty.
  const T& front() const { return *begin(); }
  const T& back() const { return *(end() - 1); }

  void push_back(const T& value) {
    if (!many_ && has_one_ == 1) many_ = std::make_unique<std::vector<T>>(1, one_);
    if (many_) return many_->push_back(value);
    one_ = value;
    has_one_ = 1;
  }
  // Removes all elements equal to `value`.
  void remove(const T& value) {
    if (many_) {
      std::erase(*many_, value);
    } else if (has_one_ == 1 && one_ == value) {
      *this = {};
    }
  }
  void clear() { *this = {}; }

 private:
  std::unique_ptr<std::vector<T>> many_;  // all elements, once there were several
  T one_{};
  std::size_t has_one_ = 0;  // 1: one_ is an element
};

}  // namespace hocket
