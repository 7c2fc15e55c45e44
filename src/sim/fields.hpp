// Reads the keys of a TOML table with checks; of what is wrong the first is kept, as one line for people: file, line,
// key, value, what to do. After that everything reads as its default, so that the caller looks once, at the end.
//
// Instead of a number an application may have a distribution, drawn anew for each of its copies:
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

// The first thing that is wrong in a file.
class Problem {
 public:
  explicit Problem(std::string file) : file_(std::move(file)) {}

  void report(const toml::source_region& where, const std::string& what);
  void report_line(std::string line) { error_.emplace(Error{std::move(line)}); }
  std::string place(const toml::source_region& where) const;
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string file_;
  std::optional<Error> error_;
};

struct Limits {
  double least = 0;
  double most = 0;
};

class Fields {
 public:
  // `what` names the table in errors ("[platform]"). With `random`, distributions are allowed.
  Fields(Problem& problem, const toml::table& table, std::string what, const Random* random = nullptr)
      : problem_(problem), table_(table), what_(std::move(what)), random_(random) {}

  // Without `otherwise`, the key must be there.
  double number(std::string_view key, Limits limits, std::optional<double> otherwise);
  std::int64_t whole(std::string_view key, Limits limits, std::optional<std::int64_t> otherwise);
  std::string text(std::string_view key, const std::optional<std::string>& otherwise);
  bool truth(std::string_view key, bool otherwise);
  // [[number, number], …], the first ascending.
  std::vector<std::pair<double, double>> points(std::string_view key, Limits first, Limits second);

  // A key that the caller reads itself.
  void may_have(std::string_view key) { known_.push_back(key); }
  bool has(std::string_view key) const { return table_.contains(key); }
  void wrong(std::string_view key, const std::string& why);
  // Keys that nobody asked for are unknown.
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
