#include "api/server_list.hpp"

#include "base/clock.hpp"
#include "bus/client.hpp"
#include "transport/address.hpp"

namespace hocket::api {
namespace {

// Time limits to connect to hocketd, and for its whole answer.
constexpr Duration connect_limit = std::chrono::seconds{2};
constexpr Duration answer_limit = std::chrono::seconds{5};

// True for the addresses of one server; else the text is a map.
bool is_address(std::string_view text) { return text.starts_with("unix:") || text.starts_with("tcp:"); }

}  // namespace

Result<event::ServerMap> ask_for_servers() {
  auto client = bus::Client::connect(bus::default_socket(), connect_limit);
  if (!client) return client.error();
  const Time deadline = node_now() + answer_limit;
  if (const Status asked = client.value().send(event::List{}); !asked) return asked.error();
  event::ServerMap map;
  while (true) {
    const auto answer = client.value().receive(deadline - node_now());
    if (!answer) return answer.error();
    if (!answer.value()) return Error{"hocketd did not answer within 5 s; is it stopped?"};
    const event::Body& body = answer.value()->body;
    if (std::holds_alternative<event::Daemon>(body)) return map;  // the last event of the list
    const auto* server = std::get_if<event::IoServer>(&body);
    // Processes without MPI-IO use the map that applications have: a server that was drained may still store.
    if (server != nullptr && server->in_map)
      map.servers.push_back({server->server, server->directory, server->addresses});
  }
}

Result<event::ServerMap> read_servers(std::string_view text) {
  if (!is_address(text)) return event::parse_server_map(0, text);
  if (const auto addresses = transport::read_addresses(text); !addresses) return addresses.error();
  return event::ServerMap{0, {{std::string{text}, "/", std::string{text}}}};
}

}  // namespace hocket::api
