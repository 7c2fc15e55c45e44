// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). Pure: the n-th number
// belongs to the state n * `splitmix_step`, so numbers can be drawn by index as well as in order.
#pragma once

#include <cstdint>

namespace hocket {

inline constexpr std::uint64_t splitmix_step = 0x9e3779b97f4a7c15U;

// Returns the number that belongs to a state.
constexpr std::uint64_t splitmix(std::uint64_t state) {
  state = (state ^ state >> 30U) * 0xbf58476d1ce4e5b9U;
  state = (state ^ state >> 27U) * 0x94d049bb133111ebU;
  return state ^ state >> 31U;
}

}  // namespace hocket
