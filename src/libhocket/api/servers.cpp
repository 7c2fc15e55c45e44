// Implements the functions of bus.h that list applications and I/O servers, and that change the server map.
#include <memory>
#include <vector>

#include "api/bus.hpp"
#include "api/event.hpp"

struct hocket_bus_listing {
  std::vector<hocket_bus_event> events;
};

namespace {

using hocket::api::fail_call;
using hocket::api::guarded;
using hocket::api::no_null;

// Sends a request about a server, and waits for the daemon's decision.
template <class MakeRequest>
int request(const char* function, hocket_bus* bus, const char* server, MakeRequest make) {
  return guarded([&] {
    if (bus == nullptr) return no_null(function, "bus");
    if (server == nullptr) return no_null(function, "server");
    const hocket::Status done = bus->client.request(make(std::string{server}));
    return done ? static_cast<int>(HOCKET_OK) : fail_call(*bus, done.error());
  });
}

}  // namespace

int hocket_bus_list(hocket_bus* bus, hocket_bus_listing** listing) {
  return guarded([&] {
    if (bus == nullptr) return no_null("hocket_bus_list", "bus");
    if (listing == nullptr) return no_null("hocket_bus_list", "listing");
    *listing = nullptr;
    const auto listed = bus->client.list();
    if (!listed) return fail_call(*bus, listed.error());
    auto made = std::make_unique<hocket_bus_listing>();
    for (const hocket::event::Event& one : listed.value()) made->events.emplace_back(one);
    *listing = made.release();
    return static_cast<int>(HOCKET_OK);
  });
}

size_t hocket_bus_listing_count(const hocket_bus_listing* listing) {
  return listing == nullptr ? 0 : listing->events.size();
}

const hocket_bus_event* hocket_bus_listing_event(const hocket_bus_listing* listing, size_t index) {
  return index < hocket_bus_listing_count(listing) ? &listing->events[index] : nullptr;
}

void hocket_bus_listing_free(hocket_bus_listing* listing) { delete listing; }

int hocket_bus_report_slow_server(hocket_bus* bus, const char* server) {
  return request("hocket_bus_report_slow_server", bus, server, [](std::string name) {
    hocket::event::SlowIoServer told;
    told.server = std::move(name);
    return told;
  });
}

int hocket_bus_drain_server(hocket_bus* bus, const char* server) {
  return request("hocket_bus_drain_server", bus, server, [](std::string name) {
    return hocket::event::SetServer{std::move(name), "drain"};
  });
}

int hocket_bus_add_server(hocket_bus* bus, const char* server) {
  return request("hocket_bus_add_server", bus, server, [](std::string name) {
    return hocket::event::SetServer{std::move(name), "add"};
  });
}

int hocket_bus_assign_servers(hocket_bus* bus, const char* application, const char* servers) {
  if (application == nullptr) return no_null("hocket_bus_assign_servers", "application");
  return request("hocket_bus_assign_servers", bus, servers, [application](std::string names) {
    return hocket::event::SetServer{std::move(names), "assign", application};
  });
}
