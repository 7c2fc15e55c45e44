// Reads and checks the keys of a TOML table. Only the first problem is kept, as one line for people: file, line, key,
// value, and what to do. After a problem the readers return defaults or limits, so the caller checks once, at the
// end.
//
// An application may give a distribution instead of a number. Each copy of the application draws its own value:
//   { uniform = [least, most] }   { lognormal = [median, sigma of the logarithm] }   { power_of_two = [least, most] }
#pragma once

#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sim/random.hpp"

namespace hocket::sim {

// Keeps the first problem of one file and ignores later ones, which are often only consequences.
class Problem {
 public:
  explicit Problem(std::string file) : file_(std::move(file)) {}

  // Records a problem at a position of the file; `report_line` takes a complete line instead.
  void report(const toml::source_region& where, const std::string& what);
  void report_line(std::string line) { error_.emplace(Error{std::move(line)}); }
  // Returns "FILE:LINE", as errors begin.
  std::string place(const toml::source_region& where) const;
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string file_;
  std::optional<Error> error_;
};

// A closed range of allowed values.
struct Limits {
  double least = 0;
  double most = 0;
};
inline constexpr double most_seconds = 1e9;  // 30 years
inline constexpr Limits seconds{0, most_seconds};

// Reads one table. All references must outlive the object. Call end() after the last key.
class TableFields {
 public:
  // `what` names the table in errors ("[platform]"). If `random` is given, numbers may be distributions.
  TableFields(Problem& problem, const toml::table& table, std::string what, const Random* random = nullptr)
      : problem_(problem), table_(table), what_(std::move(what)), random_(random) {}

  // These return the value of a key, or `otherwise` if the key is absent. Without `otherwise` the key is required. A
  // value outside `limits`, or of another type, is reported as a problem.
  double number(std::string_view key, Limits limits, std::optional<double> otherwise);
  std::int64_t whole(std::string_view key, Limits limits, std::optional<std::int64_t> otherwise);
  std::string text(std::string_view key, const std::optional<std::string>& otherwise);
  bool truth(std::string_view key, bool otherwise);
  // Returns the pairs of [[number, number], …]. The first numbers must be whole and ascending. An absent key gives
  // none.
  std::vector<std::pair<double, double>> points(std::string_view key, Limits first, Limits second);

  // Returns the texts of ["TEXT", …]; an absent key gives none.
  std::vector<std::string> texts(std::string_view key);

  // Declares a key that the caller reads itself, so that end() accepts it.
  void may_have(std::string_view key) { known_.push_back(key); }
  bool has(std::string_view key) const { return table_.contains(key); }
  // Reports that the value of `key` is wrong: `why` says what to give instead.
  void wrong(std::string_view key, const std::string& why);
  // Reports every key of the table that no reader asked for.
  void end();

 private:
  const toml::node* find(std::string_view key, bool needed);
  double checked(std::string_view key, const toml::node& node, Limits limits, bool whole);
  double drawn(std::string_view key, const toml::table& distribution, Limits limits, bool whole);

  Problem& problem_;
  const toml::table& table_;
  std::string what_;
  const Random* random_;
  std::vector<std::string_view> known_;
};

}  // namespace hocket::sim
