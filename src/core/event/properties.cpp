#include "event/properties.hpp"

#include "base/utf8.hpp"
#include "event/fields.hpp"

namespace hocket::event {
namespace {

// These overloads map each member type of an event to one of the four types of Value.
Value value_of(const std::string& v) { return v; }
Value value_of(std::int64_t v) { return v; }
Value value_of(bool v) { return v; }
Value value_of(double v) { return v; }
Value value_of(Duration v) { return static_cast<std::int64_t>(v.count()); }
Value value_of(Time v) { return to_ns(v); }
template <class Tag>
Value value_of(Id<Tag> v) {
  return static_cast<std::int64_t>(v.value);
}

// Appends the kind under the field's key, then the fields of the reason under keys such as "reason_iterations": the
// obstacle of the same event may have fields of the same names.
void append_reason(const std::string& key, const Reason& reason, Properties& out) {
  for (auto& [name, value] : properties_of(reason)) {
    std::string full = key;
    if (name != "kind") full.append("_").append(name);
    out.emplace_back(std::move(full), std::move(value));
  }
}

}  // namespace

Properties properties_of(const Event& event) {
  Properties out{{"type", std::string{type_name(event.body)}},
                 {"time_ns", to_ns(event.time)},
                 {"node", event.origin.node},
                 {"application", event.origin.application},
                 {"member", static_cast<std::int64_t>(event.origin.member.value)}};
  std::visit(
      [&out](const auto& body) {
        fields(body, [&out](const char* key, const auto& value) {
          // The properties of a USER event become top-level properties, as the fields of other events are.
          using Field = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Field, Properties>) {
            out.insert(out.end(), value.begin(), value.end());
          } else if constexpr (std::is_same_v<Field, Reason>) {
            append_reason(key, value, out);
          } else {
            out.emplace_back(key, value_of(value));
          }
        });
      },
      event.body);
  return out;
}

Status check(const User& user) {
  constexpr std::size_t longest_type = 128;
  if (user.type.empty()) return Error{"an event needs a type name; give it one that hocket does not use itself"};
  if (user.type.size() > longest_type) {
    return Error{"the type name '" + printable(user.type.substr(0, 32)) + "…' is longer than 128 bytes; shorten it"};
  }
  // A name of hocket's own could pass for one of its events in filters and traces.
  if (make_body(user.type)) {
    return Error{"the type name '" + user.type + "' is one of hocket's own; choose another"};
  }
  for (const auto& [key, value] : user.properties) {
    for (const char* own : {"type", "time_ns", "node", "application", "member"}) {
      if (key != own) continue;
      return Error{"the property '" + key + "' of '" + printable(user.type) +
                   "' is stamped by hocket itself; rename it"};
    }
  }
  return success();
}

const Value* find(const Properties& properties, std::string_view key) {
  // Searches from the end, because a field may hide an origin property of the same name.
  for (auto it = properties.rbegin(); it != properties.rend(); ++it) {
    if (it->first == key) return &it->second;
  }
  return nullptr;
}

}  // namespace hocket::event
