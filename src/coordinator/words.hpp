// Numbers in the sentences of decisions and outcomes.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "base/time.hpp"

namespace hocket::coordinator {

inline std::string number(std::int64_t n) { return std::to_string(n); }
inline std::string quoted(const std::string& text) { return "'" + text + "'"; }
inline std::string processes_text(std::int64_t n) { return number(n) + (n == 1 ? " process" : " processes"); }
inline std::string cores_text(std::int64_t n) { return number(n) + (n == 1 ? " core" : " cores"); }

// Four digits that say something.
inline std::string significant(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4).ptr;
  return {text.data(), end};
}

inline std::string seconds_text(double seconds) {
  std::array<char, 400> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed, 2).ptr;
  return std::string{text.data(), end} + " s";
}

}  // namespace hocket::coordinator
