// The function of that name that comes after ours: the MPI's own, or another tool's that stands behind us.
#pragma once

#include <atomic>

namespace hocket::runtime {

// After libhocket in the order of the loader; where MPI was loaded by dlopen (mpi4py) and is not in that order, in the
// loaded MPI libraries. Ends the process with one line if there is none: the caller called a function that does not
// exist.
void* find_next(const char* symbol) noexcept;

// The variable of that name, as the program sees it: it may have been copied out of the MPI library into the program.
void* find_variable(const char* symbol) noexcept;

template <class Function>
class Next {
 public:
  constexpr explicit Next(const char* symbol) : symbol_(symbol) {}

  Function* operator()() {
    void* found = found_.load(std::memory_order_acquire);
    if (!found) [[unlikely]] {
      found = find_next(symbol_);
      found_.store(found, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* symbol_;
  std::atomic<void*> found_ = nullptr;
};

}  // namespace hocket::runtime
