// Formats names and numbers for people, for sentences about decisions and for refusals. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/decimal.hpp"

namespace hocket::explain {

inline std::string number(std::int64_t n) { return std::to_string(n); }
inline std::string quoted(const std::string& text) { return "'" + text + "'"; }
inline std::string processes_text(std::int64_t n) { return number(n) + (n == 1 ? " process" : " processes"); }
inline std::string cores_text(std::int64_t n) { return number(n) + (n == 1 ? " core" : " cores"); }
inline std::string seconds_text(double seconds) { return decimals(seconds, 2) + " s"; }
inline std::string percent_text(double share) { return decimals(share * 100, 0) + " %"; }

}  // namespace hocket::explain
