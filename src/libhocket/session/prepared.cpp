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

std::optional<double> Prepared::number_of(const Level& level, std::string_view key) {
  const std::string* const given = find(level, key);
  return given == nullptr ? std::nullopt : number_in(*given);
}

// Returns a number that is the same for all files: the level's own, else the latest that another level gives.
std::optional<double> Prepared::number_for(const Level& level, std::string_view key) const {
  const auto own = number_of(level, key);
  return own ? own : number(key);
}

// Returns the bytes of a file as the levels within this one know them: the latest that gives bytes of its files; 0:
// none does.
double Prepared::bytes_per_file_within(const Level& level) const {
  for (std::size_t i = levels_.size(); i-- > 0 && &levels_[i] != &level;) {
    const auto bytes = number_of(levels_[i], "bytes");
    const double files = number_of(levels_[i], "files").value_or(0);
    if (bytes && files > 0) return *bytes / files;
  }
  return 0;
}

// Returns the bytes that the level announces; 0: unknown.
double Prepared::size_of(const Level& level) const {
  if (const auto bytes = number_of(level, "bytes")) return *bytes;
  if (!announces(level)) return 0;
  const auto per_round = number_for(level, "bytes_per_round");
  const double per_file =
      per_round ? number_for(level, "rounds").value_or(1) * *per_round : bytes_per_file_within(level);
  return std::min(number_of(level, "files").value_or(1) * per_file, most);
}

double Prepared::bytes_left(const IoDone& done) const {
  double left = 0;
  for (const Level& level : levels_) left = std::max(left, size_of(level) - whole(done.bytes - level.before.bytes));
  return left;
}

// Returns the files that are left of the level's; 0: it gives none.
double Prepared::files_left(const Level& level, const IoDone& done) const {
  const double files = number_of(level, "files").value_or(0);
  const std::int64_t closed = done.files - level.before.files;
  if (closed > 0) return files - whole(closed);
  const double all = size_of(level);
  if (!(all > 0)) return files;
  return files - std::floor(whole(done.bytes - level.before.bytes) * files / all + rounding);
}

IoLeft Prepared::left(const IoDone& done) const {
  double files = 0;
  for (const Level& level : levels_) files = std::max(files, files_left(level, done));
  return {at_least_0(bytes_left(done)), at_least_0(files), at_least_0(number("rounds").value_or(0)),
          at_least_0(number("bytes_per_round").value_or(0))};
}

std::int64_t Prepared::files_exceeded(const IoDone& done) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const auto files = at_least_0(number_of(*level, "files").value_or(0));
    if (files > 0 && done.files - level->before.files > files) return files;
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
