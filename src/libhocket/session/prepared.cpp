#include "session/prepared.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace hocket::runtime {
namespace {

constexpr std::array<std::string_view, 4> numbers = {"bytes", "files", "rounds", "bytes_per_round"};
constexpr double most = 9e18;  // fits into 64 bits
constexpr double rounding = 1e-9;
// Limit of `text`: each operation of a phase carries the text, and hocketd refuses longer ones.
constexpr std::size_t longest_text = 8192;

// Parses a number of at least 0, which may be written as 1e9. Returns nothing if the text is none.
std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(number) || number < 0 || number > most) return std::nullopt;
  return number;
}

double whole(std::int64_t number) { return static_cast<double>(number); }

std::int64_t at_least_0(double number) { return static_cast<std::int64_t>(std::clamp(number, 0.0, most)); }

// Replaces newlines, because they separate the keys in `text`.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

void Prepared::push(const Pairs& pairs, const IoDone& done, const std::function<void(std::string_view)>& complain) {
  Level& level = levels_.emplace_back();
  level.before = done;
  for (const auto& [key, value] : pairs) {
    const bool numeric = std::find(numbers.begin(), numbers.end(), key) != numbers.end();
    if (!numeric || number_in(value)) {
      level.pairs.emplace_back(one_line(key), one_line(value));
      continue;
    }
    std::string said = "hocket_io_prepare: ";
    complain(said.append(key).append("='").append(value).append("' is not a number of at least 0: ignored"));
  }
}

Prepared::Popped Prepared::pop() {
  if (levels_.empty()) return Popped::nothing;
  const bool announced = announces(levels_.back());
  levels_.pop_back();
  return announced && !announces() ? Popped::phase : Popped::level;
}

void Prepared::count_anew(const IoDone& done) {
  for (Level& level : levels_) level.before = done;
}

const std::string* Prepared::find(const Level& level, std::string_view key) {
  const auto found =
      std::find_if(level.pairs.begin(), level.pairs.end(), [&](const auto& one) { return one.first == key; });
  return found == level.pairs.end() ? nullptr : &found->second;
}

bool Prepared::announces(const Level& level) {
  return std::any_of(numbers.begin(), numbers.end(), [&](std::string_view key) { return find(level, key) != nullptr; });
}

bool Prepared::announces() const {
  return std::any_of(levels_.begin(), levels_.end(), [](const Level& level) { return announces(level); });
}

std::string Prepared::value(std::string_view key) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
    if (const std::string* found = find(*level, key)) return *found;
  return "";
}

std::optional<double> Prepared::number(std::string_view key) const { return number_in(value(key)); }

// Returns the bytes that follow from the parts of the phase; 0: unknown.
double Prepared::product() const {
  return number("files").value_or(1) * number("rounds").value_or(1) * number("bytes_per_round").value_or(0);
}

double Prepared::bytes_left(const IoDone& done) const {
  double left = 0;
  bool given = false;
  const Level* outermost = nullptr;
  for (const Level& level : levels_) {
    if (outermost == nullptr && announces(level)) outermost = &level;
    const std::string* bytes = find(level, "bytes");
    if (bytes == nullptr) continue;
    given = true;
    left = std::max(left, number_in(*bytes).value_or(0) - whole(done.bytes - level.before.bytes));
  }
  if (given || outermost == nullptr) return left;
  return std::min(product(), most) - whole(done.bytes - outermost->before.bytes);
}

double Prepared::files_left(const IoDone& done) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const std::string* const given = find(*level, "files");
    if (given == nullptr) continue;
    const double files = number_in(*given).value_or(0);
    const std::int64_t closed = done.files - level->before.files;
    if (closed > 0) return files - whole(closed);
    const std::string* const bytes = find(*level, "bytes");
    const double all = bytes != nullptr ? number_in(*bytes).value_or(0) : product();
    if (!(all > 0)) return files;
    return files - std::floor(whole(done.bytes - level->before.bytes) * files / all + rounding);
  }
  return 0;
}

IoLeft Prepared::left(const IoDone& done) const {
  return {at_least_0(bytes_left(done)), at_least_0(files_left(done)), at_least_0(number("rounds").value_or(0)),
          at_least_0(number("bytes_per_round").value_or(0))};
}

std::int64_t Prepared::files_exceeded(const IoDone& done) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const std::string* const given = find(*level, "files");
    if (given == nullptr) continue;
    const auto files = at_least_0(number_in(*given).value_or(0));
    return files > 0 && done.files - level->before.files > files ? files : 0;
  }
  return 0;
}

std::string Prepared::text() const {
  std::vector<std::string_view> said;
  std::string lines;
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
    for (const auto& [key, value] : level->pairs) {
      if (std::find(said.begin(), said.end(), key) != said.end()) continue;
      said.push_back(key);
      if (lines.size() + key.size() + value.size() + 2 > longest_text) continue;
      lines.append(key).append("=").append(value).append("\n");
    }
  return lines;
}

}  // namespace hocket::runtime
