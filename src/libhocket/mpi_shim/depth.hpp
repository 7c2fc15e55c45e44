// Counts how deep a thread is in wrapped functions. A call from inside another wrapped function is passed on and not
// counted. So the MPI library's own reads and writes are not mistaken for the program's.
//
// Threads of libhocket itself are inside from their start to their end. The depth is thread-local.
#pragma once

namespace hocket::runtime {

// Marks this thread as inside a wrapped function for the object's lifetime.
class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  // True if the program itself made the call.
  bool outermost() const { return depth_ == 1; }
  // True if this thread is inside a wrapped function.
  static bool any() { return depth_ > 0; }

 private:
  static inline constinit thread_local int depth_ = 0;
};

}  // namespace hocket::runtime
