// The sentences of decisions and outcomes, and numbers in them.
#pragma once

#include <array>
#include <charconv>
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

// What a policy does about an application that asks for a target beside another.
inline std::string access_text(const std::string& application, const std::string& other, const std::string& target,
                               std::string_view action) {
  const std::string name = quoted(application), beside = quoted(other), on = " on " + target;
  if (action == "interrupt") return name + " interrupts " + beside + on;
  if (action == "interfere") return name + " goes beside " + beside + on;
  if (action == "delay") return name + " waits for a while, then goes beside " + beside + on;
  if (action == "deadlock") return name + " goes beside " + beside + on + ", which waits for what it has itself";
  return name + " waits for " + beside + on;
}

inline std::string costs_text(const policy::Metric& metric, const std::vector<policy::Cost>& costs) {
  if (costs.empty()) return {};
  std::string text = "; " + metric.text() + ": ";
  for (const policy::Cost& cost : costs) {
    text.append(&cost == costs.data() ? "" : ", ").append(cost.action).append(" ").append(significant(cost.value));
  }
  return text;
}

}  // namespace hocket::coordinator
