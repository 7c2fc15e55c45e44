// How deep a thread is in what libhocket has wrapped: a call from inside another one is passed on, and not counted.
//
// Threads of libhocket itself are inside from their start to their end.
#pragma once

namespace hocket::runtime {

class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  // Whether the call is one that the program made.
  bool outermost() const { return depth_ == 1; }
  // Whether this thread is in one.
  static bool any() { return depth_ > 0; }

 private:
  static inline constinit thread_local int depth_ = 0;
};

}  // namespace hocket::runtime
