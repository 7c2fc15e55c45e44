#include <cmath>
#include <memory>

#include "api/event.hpp"
#include "api/status.hpp"
#include "bus/client.hpp"

struct hocket_bus {
  hocket::bus::Client client;
};

struct hocket_properties {
  hocket::event::Properties all;
};

namespace {

using hocket::api::fail;
using hocket::api::guarded;
using hocket::api::no_null;

constexpr hocket::Duration connect_limit = std::chrono::seconds{5};

// An error of a call on a connection: of the connection if it has ended by it, else of what was asked for.
int fail_call(const hocket_bus& bus, const hocket::Error& error) {
  return fail(bus.client.connected() ? HOCKET_ERROR_ARGUMENT : HOCKET_ERROR_CONNECTION, error.text);
}

hocket::bus::Client::Callback wrap(hocket_callback callback, void* context) {
  if (callback == nullptr) return {};
  return [callback, context](const hocket::event::Event& event) {
    const hocket_event handed{event};
    callback(&handed, context);
  };
}

// A negative time is without end, which for a client is as long as it can wait.
hocket::Duration timeout_from(double seconds) {
  constexpr double longest_s = 365 * 24 * 3600.0;
  return hocket::from_s(seconds < 0 ? longest_s : std::min(seconds, longest_s));
}

int add(const char* function, hocket_properties* properties, const char* key, hocket::event::Value value) {
  return guarded([&] {
    if (properties == nullptr) return no_null(function, "properties");
    if (key == nullptr) return no_null(function, "key");
    properties->all.emplace_back(key, std::move(value));
    return static_cast<int>(HOCKET_OK);
  });
}

}  // namespace

int hocket_connect(hocket_bus** bus) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_connect", "bus");
    *bus = nullptr;
    auto client = hocket::bus::Client::connect(hocket::bus::default_socket(), connect_limit);
    if (!client) return fail(HOCKET_ERROR_NO_DAEMON, client.error().text);
    *bus = new hocket_bus{std::move(client).value()};
    return static_cast<int>(HOCKET_OK);
  });
}

void hocket_close(hocket_bus* bus) { delete bus; }

int hocket_subscribe(hocket_bus* bus, const char* filter, hocket_callback callback, void* context, int* subscription) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_subscribe", "bus");
    if (filter == nullptr) return no_null("hocket_subscribe", "filter");
    if (subscription == nullptr) return no_null("hocket_subscribe", "subscription");
    const auto number = bus->client.subscribe(filter, wrap(callback, context));
    if (!number) return fail_call(*bus, number.error());
    *subscription = static_cast<int>(number.value());
    return static_cast<int>(HOCKET_OK);
  });
}

int hocket_unsubscribe(hocket_bus* bus, int subscription) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_unsubscribe", "bus");
    const hocket::Status done = bus->client.unsubscribe(subscription);
    return done ? static_cast<int>(HOCKET_OK) : fail_call(*bus, done.error());
  });
}

int hocket_wait(hocket_bus* bus, int subscription, double timeout_s, hocket_event** event) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_wait", "bus");
    if (event == nullptr) return no_null("hocket_wait", "event");
    *event = nullptr;
    if (std::isnan(timeout_s)) return fail(HOCKET_ERROR_ARGUMENT, "hocket_wait: 'timeout_s' is not a number");
    const auto come = bus->client.next(subscription, timeout_from(timeout_s));
    if (!come) return fail_call(*bus, come.error());
    if (!come.value()) return static_cast<int>(HOCKET_NOTHING);
    *event = new hocket_event{*come.value()};
    return static_cast<int>(HOCKET_OK);
  });
}

int hocket_test(hocket_bus* bus, int subscription, hocket_event** event) {
  return hocket_wait(bus, subscription, 0, event);
}

int64_t hocket_events_lost(const hocket_bus* bus) { return bus == nullptr ? 0 : bus->client.events_lost(); }

hocket_properties* hocket_properties_new(void) { return new (std::nothrow) hocket_properties; }
void hocket_properties_free(hocket_properties* properties) { delete properties; }

int hocket_properties_add_int(hocket_properties* properties, const char* key, int64_t value) {
  return add("hocket_properties_add_int", properties, key, value);
}

int hocket_properties_add_double(hocket_properties* properties, const char* key, double value) {
  return add("hocket_properties_add_double", properties, key, value);
}

int hocket_properties_add_bool(hocket_properties* properties, const char* key, int value) {
  return add("hocket_properties_add_bool", properties, key, value != 0);
}

int hocket_properties_add_string(hocket_properties* properties, const char* key, const char* value) {
  return guarded([&] {
    if (value == nullptr) return no_null("hocket_properties_add_string", "value");
    return add("hocket_properties_add_string", properties, key, std::string{value});
  });
}

int hocket_publish(hocket_bus* bus, const char* type, const hocket_properties* properties) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_publish", "bus");
    if (type == nullptr) return no_null("hocket_publish", "type");
    const auto& all = properties == nullptr ? hocket::event::Properties{} : properties->all;
    const hocket::Status done = bus->client.publish(type, all);
    return done ? static_cast<int>(HOCKET_OK) : fail_call(*bus, done.error());
  });
}
