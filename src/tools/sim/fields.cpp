#include "sim/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/nearest.hpp"

namespace hocket::sim {
namespace {

// Returns the value as TOML text on one line, shortened to 60 bytes for error messages.
std::string text_of(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  std::string text = out.str();
  constexpr std::size_t longest = 60;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.size() <= longest ? text : text.substr(0, longest) + "…";
}

std::string range_of(Limits limits) { return fmt::format("{:g} to {:g}", limits.least, limits.most); }
bool within(double value, Limits limits) { return value >= limits.least && value <= limits.most; }

// Returns the two numbers of an array [a, b], or nothing if the node is something else.
std::optional<std::pair<double, double>> pair_of(const toml::node* node) {
  const toml::array* array = node ? node->as_array() : nullptr;
  if (array == nullptr || array->size() != 2 || !(*array)[0].is_number() || !(*array)[1].is_number()) {
    return std::nullopt;
  }
  return std::pair{(*array)[0].value_or(0.0), (*array)[1].value_or(0.0)};
}

// Returns the position of a key's random values. It depends on the name only, so a further key in the file changes no
// other value.
std::uint64_t number_of(std::string_view key) {
  std::uint64_t hash = 0;
  for (const char c : key) hash = hash * 131 + static_cast<unsigned char>(c);
  return hash;
}

}  // namespace

std::string Problem::place(const toml::source_region& where) const {
  return fmt::format("{}:{}", file_, where.begin.line);
}

void Problem::report(const toml::source_region& where, const std::string& what) {
  if (!error_) error_.emplace(Error{place(where) + ": " + what});
}

void TableFields::wrong(std::string_view key, const std::string& why) {
  const toml::node* node = table_.get(key);
  const std::string value = node ? fmt::format(" = {}", text_of(*node)) : std::string{};
  problem_.report(node ? node->source() : table_.source(), fmt::format("{}: {}{}: {}", what_, key, value, why));
}

const toml::node* TableFields::find(std::string_view key, bool needed) {
  // Remember the name first: end() accepts it even if its value is wrong.
  known_.push_back(key);
  const toml::node* node = table_.get(key);
  if (node == nullptr && needed) wrong(key, "is missing: it has no default");
  return node;
}

double TableFields::number(std::string_view key, Limits limits, std::optional<double> otherwise) {
  const toml::node* node = find(key, !otherwise);
  return node ? checked(key, *node, limits, false) : otherwise.value_or(limits.least);
}

std::int64_t TableFields::whole(std::string_view key, Limits limits, std::optional<std::int64_t> otherwise) {
  const toml::node* node = find(key, !otherwise);
  return node ? static_cast<std::int64_t>(checked(key, *node, limits, true))
              : otherwise.value_or(static_cast<std::int64_t>(limits.least));
}

// Returns `limits.least` for a wrong value; the reported problem stops the caller at its end.
double TableFields::checked(std::string_view key, const toml::node& node, Limits limits, bool whole) {
  if (const toml::table* distribution = node.as_table()) return drawn(key, *distribution, limits, whole);
  const auto value = node.value<double>();
  if (!node.is_number() || (whole && !node.is_integer())) {
    wrong(key, fmt::format("give a {} of {}", whole ? "whole number" : "number", range_of(limits)));
  } else if (!within(*value, limits)) {
    wrong(key, "give " + range_of(limits));
  } else {
    return *value;
  }
  return limits.least;
}

double TableFields::drawn(std::string_view key, const toml::table& distribution, Limits limits, bool whole) {
  const auto refuse = [&](const std::string& why) {
    wrong(key, why);
    return limits.least;
  };
  if (random_ == nullptr) return refuse("give a number: only applications have distributions");
  if (distribution.size() != 1) return refuse("give one of uniform, lognormal, power_of_two");
  const std::string_view name = distribution.begin()->first.str();
  const auto pair = pair_of(&distribution.begin()->second);
  if (!pair) return refuse(fmt::format("{} takes two numbers in brackets", name));
  const auto [a, b] = *pair;
  const std::uint64_t number = number_of(key);
  const double u = random_->uniform(RandomStream::values, 2 * number);
  double value = 0;
  if (name == "lognormal") {
    if (!within(a, limits) || b < 0 || b > 10) {
      return refuse(fmt::format("give a median of {} and a sigma of 0 to 10", range_of(limits)));
    }
    // A lognormal value is unbounded, so it is cut off at the limits.
    value =
        std::clamp(a * std::exp(b * random_->normal(RandomStream::values, number).first), limits.least, limits.most);
  } else if (name != "uniform" && name != "power_of_two") {
    const std::vector<std::string_view> known{"uniform", "lognormal", "power_of_two"};
    return refuse(fmt::format("unknown distribution '{}': did you mean '{}'?", name, nearest(name, known)));
  } else if (!within(a, limits) || !within(b, limits) || a > b) {
    return refuse(fmt::format("give [least, most] of {}", range_of(limits)));
  } else if (name == "uniform") {
    // Each whole number, the largest included, has the same probability.
    value = whole ? std::min(b, std::floor(a + u * (b - a + 1))) : a + u * (b - a);
  } else {
    const double first = std::ceil(std::log2(std::max(a, 1.0)));
    const double last = std::floor(std::log2(std::max(b, 1.0)));
    if (first > last) return refuse("there is no power of two between these");
    value = std::exp2(std::min(last, first + std::floor(u * (last - first + 1))));
  }
  return whole ? std::clamp(std::round(value), limits.least, limits.most) : value;
}

std::string TableFields::text(std::string_view key, const std::optional<std::string>& otherwise) {
  const toml::node* node = find(key, !otherwise);
  if (node == nullptr) return otherwise.value_or("");
  if (!node->is_string()) wrong(key, "give a text in double quotes");
  return node->value_or(std::string{});
}

bool TableFields::truth(std::string_view key, bool otherwise) {
  const toml::node* node = find(key, false);
  if (node == nullptr) return otherwise;
  if (!node->is_boolean()) wrong(key, "give true or false");
  return node->value_or(otherwise);
}

std::vector<std::pair<double, double>> TableFields::points(std::string_view key, Limits first, Limits second) {
  std::vector<std::pair<double, double>> points;
  const toml::node* node = find(key, false);
  if (node == nullptr) return points;
  const toml::array* array = node->as_array();
  if (array == nullptr || array->empty()) {
    wrong(key, "give [[processes, seconds], …], at least one");
    return points;
  }
  for (const toml::node& element : *array) {
    const auto point = pair_of(&element);
    if (!point || std::floor(point->first) != point->first) {
      wrong(key, fmt::format("'{}' is no point: give [processes, seconds]", text_of(element)));
    } else if (!within(point->first, first) || !within(point->second, second)) {
      wrong(key, fmt::format("'{}': give {} processes, {} s", text_of(element), range_of(first), range_of(second)));
    } else if (!points.empty() && point->first <= points.back().first) {
      wrong(key, fmt::format("{} processes after {}: give the points by ascending processes", point->first,
                             points.back().first));
    }
    if (problem_.error()) return points;
    points.push_back(*point);
  }
  return points;
}

std::vector<std::string> TableFields::texts(std::string_view key) {
  std::vector<std::string> texts;
  const toml::node* node = find(key, false);
  if (node == nullptr) return texts;
  const toml::array* array = node->as_array();
  if (array == nullptr || array->empty()) {
    wrong(key, "give [\"NAME\", …], at least one");
    return texts;
  }
  for (const toml::node& element : *array) {
    const auto text = element.value_exact<std::string>();
    if (!text) wrong(key, fmt::format("'{}' is no text: give names in quotes", text_of(element)));
    texts.push_back(text.value_or(std::string{}));
  }
  return texts;
}

void TableFields::end() {
  for (const auto& [key, node] : table_) {
    if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
    problem_.report(key.source(), fmt::format("{}: unknown key '{}': did you mean '{}'?", what_, key.str(),
                                              nearest(key.str(), known_)));
  }
}

}  // namespace hocket::sim
