#include "event/filter.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "event/properties.hpp"

namespace hocket::event {
namespace {

struct Operator {
  std::string_view text;
  Comparison comparison;
};

// Longer operators come first, so that "<=" is not read as "<" with a value of "=…".
constexpr std::array<Operator, 6> operators{{{"!=", Comparison::not_equal},
                                             {"<=", Comparison::less_or_equal},
                                             {">=", Comparison::greater_or_equal},
                                             {"=", Comparison::equal},
                                             {"<", Comparison::less},
                                             {">", Comparison::greater}}};

// Splits a line into words at spaces. Between double quotes spaces belong to the word; the quotes themselves do not.
Result<std::vector<std::string>> split(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool any = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any) words.push_back(std::move(word));
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (quoted) return Error{"filter: a double quote is opened and never closed in '" + printable(text) + "'"};
  if (any) words.push_back(std::move(word));
  return words;
}

// Parses the whole text as a number. Returns false if a rest is left over, and for NaN, which has no order.
bool to_number(const std::string& text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !std::isnan(number);
}

Result<Condition> parse_condition(const std::string& word) {
  const std::size_t at = word.find_first_of("!=<>");
  for (const Operator& op : operators) {
    if (at == 0 || at == std::string::npos || word.compare(at, op.text.size(), op.text) != 0) continue;
    Condition condition{word.substr(0, at), op.comparison, word.substr(at + op.text.size()), false, 0};
    condition.numeric = to_number(condition.text, condition.number);
    // Texts have no order, so the four ordering operators need a number.
    const bool orders = op.comparison != Comparison::equal && op.comparison != Comparison::not_equal;
    if (orders && !condition.numeric) {
      return Error{"filter: '" + printable(word) + "' compares by size, so its value must be a number"};
    }
    return condition;
  }
  return Error{"filter: '" + printable(word) + "' is no condition; write KEY=VALUE (or != < <= > >=), after the type"};
}

bool compare(double left, Comparison comparison, double right) {
  switch (comparison) {
    case Comparison::equal: return left == right;
    case Comparison::not_equal: return left != right;
    case Comparison::less: return left < right;
    case Comparison::less_or_equal: return left <= right;
    case Comparison::greater: return left > right;
    case Comparison::greater_or_equal: return left >= right;
  }
  return false;
}

// Compares a property with the condition. Texts and booleans know = and != only. A number differs from any value that
// is not one.
bool holds(const Condition& condition, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    const bool equal = *text == condition.text;
    if (condition.comparison == Comparison::equal) return equal;
    return condition.comparison == Comparison::not_equal && !equal;
  }
  if (const auto* flag = std::get_if<bool>(&value)) {
    const bool equal = condition.text == (*flag ? "true" : "false");
    return condition.comparison == Comparison::not_equal ? !equal : condition.comparison == Comparison::equal && equal;
  }
  if (!condition.numeric) return condition.comparison == Comparison::not_equal;
  const auto* integer = std::get_if<std::int64_t>(&value);
  return compare(integer ? static_cast<double>(*integer) : std::get<double>(value), condition.comparison,
                 condition.number);
}

}  // namespace

Result<Filter> Filter::parse(std::string_view text) {
  auto words = split(text);
  if (!words) return words.error();
  Filter filter;
  bool first = true;
  for (const std::string& word : words.value()) {
    // Only the first word may be a type. A type contains no operator.
    if (first && word.find_first_of("!=<>") == std::string::npos) {
      filter.type_ = word;
    } else {
      auto condition = parse_condition(word);
      if (!condition) return condition.error();
      filter.conditions_.push_back(std::move(condition).value());
    }
    first = false;
  }
  return filter;
}

bool Filter::matches(const Event& event) const {
  if (!type_.empty() && type_ != type_name(event.body)) return false;
  if (conditions_.empty()) return true;
  const Properties properties = properties_of(event);
  for (const Condition& condition : conditions_) {
    const Value* value = find(properties, condition.key);
    if (value == nullptr || !holds(condition, *value)) return false;
  }
  return true;
}

}  // namespace hocket::event
