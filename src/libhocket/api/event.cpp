// Implements the functions of bus.h that read an event. They only read it, so several threads may call them at once.
#include "api/event.hpp"

#include "api/status.hpp"

namespace {

using hocket::api::fail;
using hocket::event::Value;

// Name of a kind, for error texts.
const char* name_of(hocket_bus_kind kind) {
  switch (kind) {
    case HOCKET_BUS_INT: return "an integer";
    case HOCKET_BUS_DOUBLE: return "a double";
    case HOCKET_BUS_BOOL: return "a bool";
    case HOCKET_BUS_STRING: return "a string";
  }
  return "";
}

// The kinds of the C API are the indexes of the variant, which these assertions guarantee.
hocket_bus_kind kind_of(const Value& value) { return static_cast<hocket_bus_kind>(value.index()); }
static_assert(std::is_same_v<std::variant_alternative_t<HOCKET_BUS_INT, Value>, std::int64_t>);
static_assert(std::is_same_v<std::variant_alternative_t<HOCKET_BUS_DOUBLE, Value>, double>);
static_assert(std::is_same_v<std::variant_alternative_t<HOCKET_BUS_BOOL, Value>, bool>);
static_assert(std::is_same_v<std::variant_alternative_t<HOCKET_BUS_STRING, Value>, std::string>);

// Looks a property up and passes it to `take`, which returns true if it has the requested kind.
template <class To, class Take>
int get(const char* function, const hocket_bus_event* event, const char* key, To* to, Take take) {
  return hocket::api::guarded([&] {
    if (event == nullptr) return hocket::api::no_null(function, "event");
    if (key == nullptr) return hocket::api::no_null(function, "key");
    if (to == nullptr) return hocket::api::no_null(function, "value");
    const Value* value = hocket::event::find(event->properties, key);
    if (value == nullptr) {
      return fail(HOCKET_ERROR_NO_PROPERTY, "an event " + event->type + " has no property '" + key + "'");
    }
    if (take(*value)) return static_cast<int>(HOCKET_OK);
    return fail(HOCKET_ERROR_TYPE, std::string{"the property '"} + key + "' of " + event->type + " is " +
                                       name_of(kind_of(*value)) + ", which " + function + " does not return");
  });
}

}  // namespace

const char* hocket_bus_event_type(const hocket_bus_event* event) { return event == nullptr ? "" : event->type.c_str(); }

int hocket_bus_event_get_int(const hocket_bus_event* event, const char* key, int64_t* value) {
  return get("hocket_bus_event_get_int", event, key, value, [&](const Value& v) {
    const auto* integer = std::get_if<std::int64_t>(&v);
    if (integer != nullptr) *value = *integer;
    return integer != nullptr;
  });
}

int hocket_bus_event_get_double(const hocket_bus_event* event, const char* key, double* value) {
  return get("hocket_bus_event_get_double", event, key, value, [&](const Value& v) {
    // An integer is accepted as a double, because publishers may write 1 for 1.0.
    const auto* integer = std::get_if<std::int64_t>(&v);
    const auto* real = std::get_if<double>(&v);
    if (integer != nullptr) *value = static_cast<double>(*integer);
    if (real != nullptr) *value = *real;
    return integer != nullptr || real != nullptr;
  });
}

int hocket_bus_event_get_bool(const hocket_bus_event* event, const char* key, int* value) {
  return get("hocket_bus_event_get_bool", event, key, value, [&](const Value& v) {
    const auto* flag = std::get_if<bool>(&v);
    if (flag != nullptr) *value = *flag ? 1 : 0;
    return flag != nullptr;
  });
}

int hocket_bus_event_get_string(const hocket_bus_event* event, const char* key, const char** value) {
  return get("hocket_bus_event_get_string", event, key, value, [&](const Value& v) {
    const auto* text = std::get_if<std::string>(&v);
    if (text != nullptr) *value = text->c_str();
    return text != nullptr;
  });
}

size_t hocket_bus_event_count(const hocket_bus_event* event) { return event == nullptr ? 0 : event->properties.size(); }

const char* hocket_bus_event_key(const hocket_bus_event* event, size_t index) {
  return index < hocket_bus_event_count(event) ? event->properties[index].first.c_str() : nullptr;
}

// An invalid index has no kind; hocket_bus_event_key returns NULL for it.
hocket_bus_kind hocket_bus_event_kind(const hocket_bus_event* event, size_t index) {
  return index < hocket_bus_event_count(event) ? kind_of(event->properties[index].second) : HOCKET_BUS_STRING;
}

void hocket_bus_event_free(hocket_bus_event* event) { delete event; }
