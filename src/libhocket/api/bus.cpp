// Implements the functions of bus.h that open, subscribe, wait and publish: checks of their arguments around
// bus::Client. No exception leaves a function (`guarded`).
#include <cmath>
#include <memory>

#include "api/bus.hpp"
#include "api/event.hpp"

struct hocket_bus_properties {
  hocket::event::Properties all;
};

namespace {

using hocket::api::fail;
using hocket::api::fail_call;
using hocket::api::guarded;
using hocket::api::no_null;

// Time limit of hocket_bus_open, as bus.h states it.
constexpr hocket::Duration connect_limit = std::chrono::seconds{5};

// Wraps a C callback. The event lives only during the call, as bus.h says.
hocket::bus::Client::Callback wrap(hocket_bus_callback callback, void* context) {
  if (callback == nullptr) return {};
  return [callback, context](const hocket::event::Event& event) {
    const hocket_bus_event handed{event};
    callback(&handed, context);
  };
}

// Converts seconds. A negative time means no limit, for which a year is used.
hocket::Duration timeout_from(double seconds) {
  constexpr double longest_s = 365 * 24 * 3600.0;
  return hocket::from_s(seconds < 0 ? longest_s : std::min(seconds, longest_s));
}

// Adds a property; all kinds share these checks.
int add(const char* function, hocket_bus_properties* properties, const char* key, hocket::event::Value value) {
  return guarded([&] {
    if (properties == nullptr) return no_null(function, "properties");
    if (key == nullptr) return no_null(function, "key");
    properties->all.emplace_back(key, std::move(value));
    return static_cast<int>(HOCKET_OK);
  });
}

}  // namespace

int hocket_bus_open(hocket_bus** bus) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_bus_open", "bus");
    *bus = nullptr;
    auto client = hocket::bus::Client::connect(hocket::bus::default_socket(), connect_limit);
    if (!client) return fail(HOCKET_ERROR_NO_DAEMON, client.error().text);
    *bus = new hocket_bus{std::move(client).value()};
    return static_cast<int>(HOCKET_OK);
  });
}

void hocket_bus_close(hocket_bus* bus) { delete bus; }

int hocket_bus_subscribe(hocket_bus* bus, const char* filter, hocket_bus_callback callback, void* context,
                         int* subscription) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_bus_subscribe", "bus");
    if (filter == nullptr) return no_null("hocket_bus_subscribe", "filter");
    if (subscription == nullptr) return no_null("hocket_bus_subscribe", "subscription");
    const auto number = bus->client.subscribe(filter, wrap(callback, context));
    if (!number) return fail_call(*bus, number.error());
    *subscription = static_cast<int>(number.value());
    return static_cast<int>(HOCKET_OK);
  });
}

int hocket_bus_unsubscribe(hocket_bus* bus, int subscription) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_bus_unsubscribe", "bus");
    const hocket::Status done = bus->client.unsubscribe(subscription);
    return done ? static_cast<int>(HOCKET_OK) : fail_call(*bus, done.error());
  });
}

int hocket_bus_wait(hocket_bus* bus, int subscription, double timeout_s, hocket_bus_event** event) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_bus_wait", "bus");
    if (event == nullptr) return no_null("hocket_bus_wait", "event");
    *event = nullptr;
    // A comparison with NaN is false, so it would pass every check of the time limit.
    if (std::isnan(timeout_s)) return fail(HOCKET_ERROR_ARGUMENT, "hocket_bus_wait: 'timeout_s' is not a number");
    const auto come = bus->client.next(subscription, timeout_from(timeout_s));
    if (!come) return fail_call(*bus, come.error());
    if (!come.value()) return static_cast<int>(HOCKET_BUS_NOTHING);
    *event = new hocket_bus_event{*come.value()};
    return static_cast<int>(HOCKET_OK);
  });
}

int hocket_bus_test(hocket_bus* bus, int subscription, hocket_bus_event** event) {
  return hocket_bus_wait(bus, subscription, 0, event);
}

int64_t hocket_bus_events_lost(const hocket_bus* bus) { return bus == nullptr ? 0 : bus->client.events_lost(); }

// Returns NULL without memory instead of a code, as bus.h states.
hocket_bus_properties* hocket_bus_properties_create(void) { return new (std::nothrow) hocket_bus_properties; }
void hocket_bus_properties_free(hocket_bus_properties* properties) { delete properties; }

int hocket_bus_properties_add_int(hocket_bus_properties* properties, const char* key, int64_t value) {
  return add("hocket_bus_properties_add_int", properties, key, value);
}

int hocket_bus_properties_add_double(hocket_bus_properties* properties, const char* key, double value) {
  return add("hocket_bus_properties_add_double", properties, key, value);
}

int hocket_bus_properties_add_bool(hocket_bus_properties* properties, const char* key, int value) {
  return add("hocket_bus_properties_add_bool", properties, key, value != 0);
}

int hocket_bus_properties_add_string(hocket_bus_properties* properties, const char* key, const char* value) {
  return guarded([&] {
    if (value == nullptr) return no_null("hocket_bus_properties_add_string", "value");
    return add("hocket_bus_properties_add_string", properties, key, std::string{value});
  });
}

int hocket_bus_publish(hocket_bus* bus, const char* type, const hocket_bus_properties* properties) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_bus_publish", "bus");
    if (type == nullptr) return no_null("hocket_bus_publish", "type");
    // NULL means no properties.
    const auto& all = properties == nullptr ? hocket::event::Properties{} : properties->all;
    const hocket::Status done = bus->client.publish(type, all);
    return done ? static_cast<int>(HOCKET_OK) : fail_call(*bus, done.error());
  });
}
