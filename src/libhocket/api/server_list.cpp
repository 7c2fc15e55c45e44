#include "api/server_list.hpp"

#include "base/clock.hpp"
#include "bus/client.hpp"
#include "transport/address.hpp"

namespace hocket::api {
namespace {

constexpr Duration ask_limit = std::chrono::seconds{2};

// True for the addresses of one server; else the text is a map.
bool is_address(std::string_view text) { return text.starts_with("unix:") || text.starts_with("tcp:"); }

}  // namespace

Result<event::ServerMap> ask_for_servers() {
  auto client = bus::Client::connect(bus::default_socket(), ask_limit);
  if (!client) return client.error();
  const auto listed = client.value().list();
  if (!listed) return listed.error();
  event::ServerMap map;
  for (const event::Event& one : listed.value()) {
    const auto* server = std::get_if<event::IoServer>(&one.body);
    // Processes without MPI-IO use the map that applications have: a server that was drained may still store.
    if (server == nullptr) continue;
    const bool aside = !server->in_map && (server->state == "slow" || server->moves_data_sets);
    if (!server->in_map && !aside) continue;
    const bool is_weight = server->weight >= 1 && server->weight <= event::full_weight;  // else of an older hocketd
    map.servers.push_back({server->server, server->directory, server->addresses, aside,
                           is_weight ? static_cast<int>(server->weight) : event::full_weight});
  }
  return map;
}

Result<event::ServerMap> read_servers(std::string_view text) {
  if (!is_address(text)) return event::parse_server_map(0, text);
  if (const auto addresses = transport::read_addresses(text); !addresses) return addresses.error();
  return event::ServerMap{0, {{std::string{text}, "/", std::string{text}}}, {}};
}

}  // namespace hocket::api
