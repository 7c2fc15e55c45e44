#include "session/prepared.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace hocket::runtime {
namespace {

constexpr std::array<std::string_view, 4> numbers = {"bytes", "files", "rounds", "bytes_per_round"};
constexpr double most = 9e18;  // fits into 64 bits
// Limit of `text`: each operation of a phase carries the text, and hocketd refuses longer ones.
constexpr std::size_t longest_text = 8192;

// Parses a number of at least 0, which may be written as 1e9. Returns nothing if the text is none.
std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(number) || number < 0 || number > most) return std::nullopt;
  return number;
}

// Replaces newlines, because they separate the keys in `text`.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

void Prepared::push(const Pairs& pairs, const std::function<void(std::string_view)>& complain) {
  Pairs& level = levels_.emplace_back();
  for (const auto& [key, value] : pairs) {
    const bool numeric = std::find(numbers.begin(), numbers.end(), key) != numbers.end();
    if (!numeric || number_in(value)) {
      level.emplace_back(one_line(key), one_line(value));
      continue;
    }
    std::string said = "hocket_io_prepare: ";
    complain(said.append(key).append("='").append(value).append("' is not a number of at least 0: ignored"));
  }
}

bool Prepared::pop() {
  if (levels_.empty()) return false;
  levels_.pop_back();
  return true;
}

std::string Prepared::value(std::string_view key) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
    for (const auto& [other, value] : *level)
      if (other == key) return value;
  return "";
}

std::int64_t Prepared::phase_bytes() const {
  const auto number = [&](std::string_view key) { return number_in(value(key)); };
  if (const auto bytes = number("bytes")) return static_cast<std::int64_t>(*bytes);
  const double product =
      number("files").value_or(1) * number("rounds").value_or(1) * number("bytes_per_round").value_or(0);
  return static_cast<std::int64_t>(std::min(product, most));
}

std::string Prepared::text() const {
  std::vector<std::string_view> said;
  std::string lines;
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
    for (const auto& [key, value] : *level) {
      if (std::find(said.begin(), said.end(), key) != said.end()) continue;
      said.push_back(key);
      if (lines.size() + key.size() + value.size() + 2 > longest_text) continue;
      lines.append(key).append("=").append(value).append("\n");
    }
  return lines;
}

}  // namespace hocket::runtime
