// Encodes integers as little-endian bytes, whatever the machine's byte order. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace hocket::transport {

// Writes the number to `out`, and returns the position behind it.
template <class Number>
char* put(char* out, Number number) {
  auto left = static_cast<std::make_unsigned_t<Number>>(number);
  for (std::size_t i = 0; i < sizeof left; ++i) {
    out[i] = static_cast<char>(left & 0xffU);
    if constexpr (sizeof left > 1) left = static_cast<decltype(left)>(left >> 8U);
  }
  return out + sizeof left;
}

// Reads a number, and advances `in` beyond it.
template <class Number>
Number get(const char*& in) {
  std::make_unsigned_t<Number> number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number = static_cast<decltype(number)>(number | static_cast<decltype(number)>(static_cast<unsigned char>(in[i]))
                                                        << (8U * i));
  }
  in += sizeof number;
  return static_cast<Number>(number);
}

}  // namespace hocket::transport
