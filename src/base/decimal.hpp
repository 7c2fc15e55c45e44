// Numbers as text for people. Pure: neither the C library's files nor a locale come with it.
#pragma once

#include <array>
#include <charconv>
#include <string>

namespace hocket {

// With so many digits after the point.
inline std::string decimals(double value, int digits) {
  std::array<char, 384> text{};  // the largest double has 309 digits before the point
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}

// With so many digits that count, and an exponent where it is far from 1.
inline std::string significant(double value, int digits = 6) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
  return {text.data(), end};
}

}  // namespace hocket
