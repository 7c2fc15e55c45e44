// Builds the sentences of decisions and outcomes, and the numbers in them. Operators read these in `hocket explain` and
// in the trace. Pure.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "policy/metric.hpp"
#include "policy/policy.hpp"

namespace hocket::coordinator {

inline std::string number(std::int64_t n) { return std::to_string(n); }
inline std::string quoted(const std::string& text) { return "'" + text + "'"; }
inline std::string processes_text(std::int64_t n) { return number(n) + (n == 1 ? " process" : " processes"); }
inline std::string cores_text(std::int64_t n) { return number(n) + (n == 1 ? " core" : " cores"); }

// Returns the value with four significant digits.
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

inline std::string percent_text(double share) { return number(std::llround(share * 100)) + " %"; }

// Returns the sentence about an application that requests a target which another one uses or wants. `other` may be ""
// if the application waits. The text takes one allocation, since many are made when applications alternate.
inline std::string access_text(const std::string& application, const std::string& other, const std::string& target,
                               std::string_view action) {
  std::string_view does = " waits for ", more;
  if (action == "interrupt") does = " interrupts ";
  if (action == "interfere" || action == "deadlock") does = " goes beside ";
  if (action == "delay") does = " waits for a while, then goes beside ";
  if (action == "deadlock") more = ", which waits for what it has itself";
  if (other.empty()) does = " waits";
  std::string text;
  text.reserve(application.size() + does.size() + other.size() + target.size() + more.size() + 8);
  text.append("'").append(application).append("'").append(does);
  if (!other.empty()) text.append("'").append(other).append("'");
  return text.append(" on ").append(target).append(more);
}

// Returns the values of the metric that were compared, as the end of a sentence; "" if there are none.
inline std::string costs_text(const policy::Metric& metric, const std::vector<policy::Cost>& costs) {
  if (costs.empty()) return {};
  std::string text = "; " + metric.text() + ": ";
  for (const policy::Cost& cost : costs) {
    text.append(&cost == costs.data() ? "" : ", ").append(cost.action).append(" ").append(significant(cost.value));
  }
  return text;
}

}  // namespace hocket::coordinator
