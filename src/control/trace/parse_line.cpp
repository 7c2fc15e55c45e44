#include <limits>
#include <nlohmann/json.hpp>

#include "event/fields.hpp"
#include "trace/line.hpp"

namespace hocket::trace {
namespace {

// True if the value is an integer within int64.
bool fits(const nlohmann::ordered_json& from) {
  return from.is_number_integer() &&
         (!from.is_number_unsigned() || from.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
}

// Each `assign` stores a value in a field of that type. It returns false if the value has another type.
bool assign(std::string& to, const nlohmann::ordered_json& from) {
  if (from.is_string()) to = from.get<std::string>();
  return from.is_string();
}
bool assign(std::int64_t& to, const nlohmann::ordered_json& from) {
  if (!fits(from)) return false;
  to = from.get<std::int64_t>();
  return true;
}
bool assign(bool& to, const nlohmann::ordered_json& from) {
  if (from.is_boolean()) to = from.get<bool>();
  return from.is_boolean();
}
bool assign(double& to, const nlohmann::ordered_json& from) {
  // The writer turns numbers that are not finite into null.
  if (from.is_null()) to = std::numeric_limits<double>::quiet_NaN();
  if (from.is_number()) to = from.get<double>();
  return from.is_number() || from.is_null();
}
bool assign(Duration& to, const nlohmann::ordered_json& from) {
  std::int64_t ns = 0;
  if (!assign(ns, from)) return false;
  to = Duration{ns};
  return true;
}
bool assign(Time& to, const nlohmann::ordered_json& from) {
  std::int64_t ns = 0;
  if (!assign(ns, from)) return false;
  to = time_from_ns(ns);
  return true;
}
template <class Tag>
bool assign(Id<Tag>& to, const nlohmann::ordered_json& from) {
  if (!from.is_number_unsigned()) return false;
  to.value = from.get<std::uint64_t>();
  return true;
}
bool assign(event::Value& to, const nlohmann::ordered_json& from) {
  // The JSON type of the value determines the property's type.
  const auto take = [&](auto v) {
    const bool fitting = assign(v, from);
    if (fitting) to = std::move(v);
    return fitting;
  };
  if (from.is_string()) return take(std::string{});
  if (from.is_boolean()) return take(false);
  if (from.is_number_integer()) return take(std::int64_t{0});
  return take(0.0);
}
bool assign(event::Properties& to, const nlohmann::ordered_json& from) {
  if (!from.is_object()) return false;
  for (const auto& [key, value] : from.items()) {
    auto& property = to.emplace_back(key, std::int64_t{0});
    if (!assign(property.second, value)) return false;
  }
  return true;
}
bool assign(event::Reason& to, const nlohmann::ordered_json& from) {
  event::Properties properties;
  if (!assign(properties, from)) return false;
  to = event::reason_of(properties);
  return true;
}

// Assigns the values of a line to fields, and remembers the last key with a value of the wrong type.
class Taker {
 public:
  explicit Taker(const nlohmann::ordered_json& line) : line_(line) {}

  // Returns false if the line has no such key.
  bool take(const char* key, auto& to) {
    const auto found = line_.find(key);
    if (found == line_.end()) return false;
    if (!assign(to, *found)) wrong_ = key;
    return true;
  }
  const char* wrong() const { return wrong_; }

 private:
  const nlohmann::ordered_json& line_;
  const char* wrong_ = nullptr;
};

// Gives the quantity of an OUTCOME its present name: traces of version 1 have a phrase for it.
void rename_quantity(event::Body& body) {
  auto* outcome = std::get_if<event::Outcome>(&body);
  if (outcome == nullptr) return;
  if (outcome->quantity == "start of the next I/O phase") outcome->quantity = event::quantity::phase_start;
  if (outcome->quantity == "I/O period") outcome->quantity = event::quantity::period;
}

// Returns an event of that type; a type that hocket does not know is a USER event.
event::Body body_of(const std::string& type) {
  if (auto own = event::make_body(type)) return std::move(*own);
  return event::User{type, {}};
}

}  // namespace

Result<Record> parse_line(std::string_view line) {
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return Error{"it is no JSON object"};
  Record record;
  Taker taker{json};
  std::string type;
  record.direction = json.contains("in") ? Direction::in : Direction::out;
  taker.take(record.direction == Direction::in ? "in" : "out", type);
  if (type.empty()) return Error{"it has neither 'in' nor 'out' with an event's type"};
  taker.take("time_ns", record.event.time);
  taker.take("node", record.event.origin.node);
  taker.take("application", record.event.origin.application);
  taker.take("member", record.event.origin.member);
  record.event.body = body_of(type);
  std::visit(
      [&](auto& body) {
        fields(body, [&](const char* key, auto& field) {
          if (!taker.take(key, field)) record.missing.emplace_back(key);
        });
      },
      record.event.body);
  if (const char* wrong = taker.wrong())
    return Error{std::string{"'"} + wrong + "' of " + type + " is of the wrong type"};
  rename_quantity(record.event.body);
  return record;
}

}  // namespace hocket::trace
