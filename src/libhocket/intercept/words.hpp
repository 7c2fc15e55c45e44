// The arguments of an MPI call as machine words. In the calling conventions of 64-bit Linux each integer or pointer
// takes one word, in a register or on the stack. A wrapper that takes words can therefore pass a call on unharmed,
// whichever MPI's types the caller has: a communicator has 32 bits in MPICH and 64 in Open MPI.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>
#include <type_traits>

#include "mpi_shim/next.hpp"

namespace hocket::runtime {

using Word = std::uintptr_t;

// Returns the argument as the type that this libhocket's mpi.h gives it.
template <class Type>
Type from_word(Word word) {
  static_assert(sizeof(Type) <= sizeof(Word) && (std::is_pointer_v<Type> || std::is_integral_v<Type>));
  if constexpr (std::is_pointer_v<Type>)
    return reinterpret_cast<Type>(word);  // NOLINT(performance-no-int-to-ptr): MPI's argument is a pointer
  else
    return static_cast<Type>(word);
}

// Calls a function with the words of the caller. They may be of another MPI's types.
template <class... Types, class... Words>
int pass_words(int (*function)(Types...), Words... words) {
  const auto untyped = reinterpret_cast<void (*)()>(function);  // g++ takes a cast in one step for a mistake
  return reinterpret_cast<int (*)(Words...)>(untyped)(words...);
}

// An argument of a routine with large counts (MPI_Send_c), where the routine without them is called in its place.
enum class LargeArgument : std::uint8_t {
  same,    // both take it
  count,   // a 64-bit count, which the other takes as int
  counts,  // an array of those, one element for each process
};

// Passes a call on to a routine with large counts. The program's MPI may lack it: mpi4py calls such a routine if any
// loaded library has it, and libhocket has it for its own MPI. Then the routine without large counts takes the call.
// `lasting`: MPI reads the arrays after the call has returned.
template <LargeArgument... arguments>
struct LargeRoutine {
  template <std::size_t comm, bool lasting, class... Words>
  static int pass(const char* large, const char* plain, Words... words) {
    if (void* const found = find_loaded(large)) return reinterpret_cast<int (*)(Words...)>(found)(words...);
    constexpr int error_count = 2;  // MPI_ERR_COUNT of MPICH and of Open MPI
    if (((arguments == LargeArgument::count && words > std::numeric_limits<int>::max()) || ...)) return error_count;
    const std::array<Word, sizeof...(words)> all{words...};
    const std::size_t length = ((arguments == LargeArgument::counts) || ...) ? processes_of(all[comm]) : 0;
    std::array<std::unique_ptr<int[]>, sizeof...(words)> arrays;
    std::size_t at = 0;
    const auto smaller = [&](LargeArgument argument, Word word) {
      std::unique_ptr<int[]>& array = arrays[at++];
      if (argument != LargeArgument::counts || word == 0) return word;
      array = std::make_unique<int[]>(length);
      const auto* from = from_word<const std::int64_t*>(word);
      std::transform(from, from + length, array.get(), [](std::int64_t count) { return static_cast<int>(count); });
      return reinterpret_cast<Word>(array.get());
    };
    const std::tuple<Words...> fitting{smaller(arguments, words)...};  // braces keep the order
    const int rc = std::apply(reinterpret_cast<int (*)(Words...)>(find_next(plain)), fitting);
    if (lasting)
      for (std::unique_ptr<int[]>& array : arrays) static_cast<void>(array.release());  // only MPI knows until when
    return rc;
  }

 private:
  static std::size_t processes_of(Word comm) {
    int inter = 0, size = 0;
    reinterpret_cast<int (*)(Word, int*)>(find_next("PMPI_Comm_test_inter"))(comm, &inter);
    reinterpret_cast<int (*)(Word, int*)>(find_next(inter ? "PMPI_Comm_remote_size" : "PMPI_Comm_size"))(comm, &size);
    return static_cast<std::size_t>(size);
  }
};

}  // namespace hocket::runtime
