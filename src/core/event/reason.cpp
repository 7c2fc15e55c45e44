#include "event/reason.hpp"

#include <cmath>
#include <type_traits>

#include "event/properties.hpp"
#include "event/reason_fields.hpp"

namespace hocket::event {
namespace {

// True if the value is written. A reader takes "", false, or not_known for a value that is absent.
bool is_written(const std::string& v) { return !v.empty(); }
bool is_written(std::int64_t) { return true; }
bool is_written(bool v) { return v; }
bool is_written(double v) { return std::isfinite(v); }

// Assigns the property of the field's type, if there is one. A whole number is also a number. Any other value counts as
// absent.
template <class T>
void assign(T& to, const Value* from) {
  const auto* same = from == nullptr ? nullptr : std::get_if<T>(from);
  if (same != nullptr) to = *same;
  if constexpr (std::is_same_v<T, double>) {
    const auto* whole = from == nullptr ? nullptr : std::get_if<std::int64_t>(from);
    if (same == nullptr) to = whole == nullptr ? not_known : static_cast<double>(*whole);
  }
}

template <std::size_t... I>
Reason make_reason(std::string_view kind, std::index_sequence<I...>) {
  Reason reason;
  ((std::variant_alternative_t<I, Reason>::name == kind ? void(reason.emplace<I>()) : void()), ...);
  return reason;
}

}  // namespace

Properties properties_of(const Reason& reason) {
  Properties out;
  if (is_none(reason)) return out;
  std::visit(
      [&out](const auto& one) {
        out.emplace_back("kind", std::string{one.name});
        fields(one, [&out](const char* key, const auto& value) {
          if (is_written(value)) out.emplace_back(key, value);
        });
      },
      reason);
  return out;
}

Reason reason_of(const Properties& properties) {
  const Value* kind = find(properties, "kind");
  const auto* name = kind == nullptr ? nullptr : std::get_if<std::string>(kind);
  if (name == nullptr) return {};
  Reason reason = make_reason(*name, std::make_index_sequence<std::variant_size_v<Reason>>());
  std::visit(
      [&properties](auto& one) {
        fields(one, [&properties](const char* key, auto& field) { assign(field, find(properties, key)); });
      },
      reason);
  return reason;
}

}  // namespace hocket::event
