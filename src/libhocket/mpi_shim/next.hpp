// Finds the next function of a name behind libhocket's wrapper: the MPI library's own, or that of another tool. Both
// searches are thread-safe.
#pragma once

#include <atomic>

namespace hocket::runtime {

// Returns the function after libhocket in the loader's order. If MPI was loaded by dlopen (mpi4py), it is not in that
// order; then the loaded MPI libraries are searched. If there is none, the process ends with one line, because the
// caller called a function that does not exist.
void* find_next(const char* symbol) noexcept;

// Returns the symbol in the same libraries, or nullptr if there is none.
void* find_loaded(const char* symbol) noexcept;

// Returns the variable of that name as the program sees it: the linker may have copied it from libmpi into the program.
void* find_variable(const char* symbol) noexcept;

// A function pointer that is looked up at the first call and then cached. Thread-safe, and usable before constructors.
template <class Function>
class NextFunction {
 public:
  constexpr explicit NextFunction(const char* symbol) : symbol_(symbol) {}

  [[gnu::always_inline]] Function* operator()() {
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
