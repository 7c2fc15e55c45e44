// Numbers as text for people, independent of locale and of the C library's files. Pure, thread-safe.
#pragma once

#include <array>
#include <charconv>
#include <string>

namespace hocket {

// Returns `value` with `digits` digits after the point.
inline std::string decimals(double value, int digits) {
  std::array<char, 384> text{};  // the largest double has 309 digits before the point
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, digits).ptr;
  return {text.data(), end};
}

// Returns `value` with `digits` significant digits, and an exponent if it is far from 1.
inline std::string significant(double value, int digits = 6) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
  return {text.data(), end};
}

}  // namespace hocket
