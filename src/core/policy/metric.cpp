#include "policy/metric.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/nearest.hpp"
#include "base/utf8.hpp"

namespace hocket::policy {
namespace {

struct NamedFormula {
  std::string_view name;
  std::string_view formula;
};
constexpr std::array<NamedFormula, 4> known{{{"cpu-time", "sum(processes * io_time)"},
                                             {"io-time", "sum(io_time)"},
                                             {"interference", "sum(io_time / alone)"},
                                             {"makespan", "max(end)"}}};

struct Quantity {
  std::string_view name;
  double ExpectedPhase::*value;
};
constexpr std::array<Quantity, 6> quantities{{{"processes", &ExpectedPhase::processes},
                                              {"io_time", &ExpectedPhase::io_time_s},
                                              {"alone", &ExpectedPhase::alone_s},
                                              {"end", &ExpectedPhase::end_s},
                                              {"flops", &ExpectedPhase::flops},
                                              {"run_time", &ExpectedPhase::run_time_s}}};

constexpr std::size_t longest = 1000;  // characters
constexpr int deepest = 64;            // nesting, which bounds the recursion

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Quotes at most 64 bytes, made valid UTF-8: the text comes from a client and goes into a message.
std::string quoted(std::string_view text) { return "'" + to_utf8(text.substr(0, 64)) + "'"; }

}  // namespace

// A recursive-descent parser. It keeps the first error and skips the rest of the text. The grammar, loosest first:
//   sum     = product { ("+" | "-") product }
//   product = power { ("*" | "/") power }
//   power   = "-" power | primary [ "^" power ]          so -2^2 is -4, and 2^3^2 is 2^9
//   primary = "(" sum ")" | number | name | function "(" sum ")"
class Metric::Parser {
 public:
  Parser(std::string_view text, Metric& metric) : text_(text), metric_(metric) {}

  Status parse() {
    const std::size_t whole = sum();
    if (wrong_.empty() && at_ < text_.size()) fail("there is " + quoted(text_.substr(at_)) + " after its end");
    if (wrong_.empty() && !names_)
      fail("it says nothing of the applications: use processes, io_time, alone, end, flops or run_time");
    if (wrong_.empty() && aggregates_ && bare_) {
      fail("'" + std::string{*bare_} + "' stands outside of sum(), mean(), max() and min(): of which application?");
    }
    if (!wrong_.empty()) return Error{wrong_};
    if (!aggregates_) add({FormulaNodeKind::sum, 0, nullptr, whole, 0});
    return success();
  }

 private:
  std::size_t add(const FormulaNode& node) {
    metric_.nodes_.push_back(node);
    return metric_.nodes_.size() - 1;
  }
  std::size_t fail(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
    at_ = text_.size();
    return 0;
  }
  // Skips spaces and returns the next character; '\0' at the end.
  char next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  std::size_t sum() {
    std::size_t left = product();
    for (;;) {
      if (take('+')) {
        left = add({FormulaNodeKind::add, 0, nullptr, left, product()});
      } else if (take('-')) {
        left = add({FormulaNodeKind::subtract, 0, nullptr, left, product()});
      } else {
        next();
        return left;
      }
    }
  }

  std::size_t product() {
    std::size_t left = power();
    for (;;) {
      if (take('*')) {
        left = add({FormulaNodeKind::multiply, 0, nullptr, left, power()});
      } else if (take('/')) {
        left = add({FormulaNodeKind::divide, 0, nullptr, left, power()});
      } else {
        return left;
      }
    }
  }

  std::size_t power() {
    if (++depth_ > deepest) return fail("it is nested too deeply");
    std::size_t result = 0;
    if (take('-')) {
      result = add({FormulaNodeKind::negate, 0, nullptr, power(), 0});
    } else {
      result = primary();
      if (take('^')) result = add({FormulaNodeKind::power, 0, nullptr, result, power()});
    }
    --depth_;
    return result;
  }

  std::size_t primary() {
    const char c = next();
    if (take('(')) {
      const std::size_t inner = sum();
      if (!take(')')) fail("a ')' is missing");
      return inner;
    }
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c)) return word();
    if (c == '\0') return fail("it ends where a number or a name should come");
    return fail("a number or a name should come before " + quoted(text_.substr(at_)));
  }

  std::size_t number() {
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) return fail(quoted(text_.substr(at_)) + " is not a number");
    at_ += static_cast<std::size_t>(end - begin);
    return add({FormulaNodeKind::number, value, nullptr, 0, 0});
  }

  std::size_t word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    for (const auto& [kind, known_name] : functions) {
      if (name == known_name) return function(kind, name);
    }
    for (const Quantity& quantity : quantities) {
      if (name != quantity.name) continue;
      names_ = true;
      if (!inside_ && !bare_) bare_ = quantity.name;
      return add({FormulaNodeKind::name, 0, quantity.value, 0, 0});
    }
    std::vector<std::string_view> names;
    names.reserve(quantities.size() + functions.size());
    for (const Quantity& quantity : quantities) names.push_back(quantity.name);
    for (const auto& [kind, known_name] : functions) names.push_back(known_name);
    return fail("unknown name " + quoted(name) + ": did you mean '" + std::string{nearest(name, names)} +
                "'? there are processes, io_time, alone, end, flops, run_time, sum(), mean(), max() and min()");
  }

  // Functions do not nest: inside of one, a name stands for one application, and there is nothing left to sum.
  std::size_t function(FormulaNodeKind kind, std::string_view name) {
    if (inside_) return fail(std::string{name} + "() stands in another of its kind");
    if (!take('(')) return fail("'(' is missing after " + std::string{name});
    aggregates_ = inside_ = true;
    const std::size_t inner = sum();
    inside_ = false;
    if (!take(')')) fail("a ')' is missing");
    return add({kind, 0, nullptr, inner, 0});
  }

  static constexpr std::array<std::pair<FormulaNodeKind, std::string_view>, 4> functions{
      {{FormulaNodeKind::sum, "sum"},
       {FormulaNodeKind::mean, "mean"},
       {FormulaNodeKind::max, "max"},
       {FormulaNodeKind::min, "min"}}};

  std::string_view text_;
  Metric& metric_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool inside_ = false;      // of a function
  bool aggregates_ = false;  // a function was seen
  bool names_ = false;
  std::optional<std::string_view> bare_;  // the first name outside of any function
  std::string wrong_;
};

namespace {

// Typical applications, on which parse() tries a formula: small and large, alike and different.
constexpr std::array<ExpectedPhase, 4> examples{{{1, 0.001, 0.001, 0.001, 1e8, 0.002},
                                                 {24, 3, 2, 1, 1e11, 100},
                                                 {24, 3, 2, 1, 1e11, 100},
                                                 {2048, 500, 100, 400, 1e13, 9000}}};

}  // namespace

Result<Metric> Metric::parse(std::string_view text) {
  const auto wrong = [&](const std::string& what) {
    return Error{"metric " + quoted(text) + ": " + what + "; there are cpu-time, io-time, interference, makespan, or " +
                 "a formula such as \"sum(processes*io_time)\""};
  };
  Metric metric;
  metric.text_ = text;
  std::string_view formula = text;
  std::vector<std::string_view> names;
  names.reserve(known.size());
  for (const NamedFormula& named : known) {
    if (named.name == text) formula = named.formula;
    names.push_back(named.name);
  }
  if (text.size() > longest) return wrong("it is longer than " + std::to_string(longest) + " characters");
  if (text.find_first_not_of(" \t") == std::string_view::npos) return wrong("it is empty");
  if (const Status parsed = Parser{formula, metric}.parse(); !parsed) {
    const std::string_view near = nearest(text, names);
    const bool is_word = text.find_first_of(" \t+*/^()") == std::string_view::npos;
    const bool meant = is_word && edit_distance(text.substr(0, 64), near) <= 3;
    return wrong(meant ? "did you mean '" + std::string{near} + "'?" : parsed.error().text);
  }
  for (std::size_t count = 1; count <= examples.size(); ++count) {
    if (!std::isfinite(metric.of(std::span{examples}.first(count)))) {
      return wrong("it is not a finite number for " + std::to_string(count) + " usual application" +
                   (count == 1 ? "" : "s") + ": does it divide by 0, or take a root of less than 0?");
    }
  }
  return metric;
}

bool Metric::uses_flops() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const FormulaNode& node) { return node.value == &ExpectedPhase::flops; });
}

double Metric::of(std::span<const ExpectedPhase> applications) const {
  if (!nodes_.empty()) return evaluate(nodes_.size() - 1, applications, nullptr);
  double sum = 0;
  for (const ExpectedPhase& one : applications) sum += one.processes * one.io_time_s;
  return sum;
}

double Metric::evaluate(std::size_t i, std::span<const ExpectedPhase> applications, const ExpectedPhase* one) const {
  const FormulaNode& node = nodes_[i];
  const auto left = [&] { return evaluate(node.left, applications, one); };
  const auto right = [&] { return evaluate(node.right, applications, one); };
  switch (node.kind) {
    case FormulaNodeKind::number: return node.number;
    case FormulaNodeKind::name: return one->*node.value;
    case FormulaNodeKind::negate: return -left();
    case FormulaNodeKind::add: return left() + right();
    case FormulaNodeKind::subtract: return left() - right();
    case FormulaNodeKind::multiply: return left() * right();
    case FormulaNodeKind::divide: return left() / right();
    case FormulaNodeKind::power: return std::pow(left(), right());
    default: return aggregate(node, applications);
  }
}

double Metric::aggregate(const FormulaNode& node, std::span<const ExpectedPhase> applications) const {
  double sum = 0;
  double most = -std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  for (const ExpectedPhase& one : applications) {
    const double value = evaluate(node.left, applications, &one);
    sum += value;
    most = std::max(most, value);
    least = std::min(least, value);
  }
  switch (node.kind) {
    case FormulaNodeKind::max: return most;
    case FormulaNodeKind::min: return least;
    case FormulaNodeKind::mean: return sum / static_cast<double>(applications.size());
    default: return sum;
  }
}

}  // namespace hocket::policy
