// The server map: the I/O servers that collective I/O is declustered over, and its epoch, the time in which it does not
// change (CLARISSE, section IV-A).
//
// As text (SERVER_MAP) it is one line a server, "NAME DIRECTORY ADDRESSES": what is no printable ASCII in the
// directory, and '%', is written as %XX; the addresses may hold spaces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hocket::event {

struct ServerMap {
  struct Server {
    std::string name;
    std::string directory;  // absolute: the server opens files below it and no others
    std::string addresses;  // where it listens: "unix:/path tcp:host:port"
    friend bool operator==(const Server&, const Server&) = default;
  };
  std::int64_t epoch = 0;       // 0: no map was ever heard of. Rises by one with each change; a new hocketd begins anew
  std::vector<Server> servers;  // in the order in which they came; the same for all applications. May be empty
  friend bool operator==(const ServerMap&, const ServerMap&) = default;
};

// A text that fits a frame. Longer maps do not come up: the controller takes no server that would make it longer.
constexpr std::size_t longest_server_map = 32'768;

std::string text_of(const std::vector<ServerMap::Server>& servers);
// The error says which line is wrong.
Result<ServerMap> parse_server_map(std::int64_t epoch, std::string_view text);

// Whether a file, by its absolute path, is one that the server serves.
bool serves(const ServerMap::Server& server, std::string_view path);

// ---- data sets that applications exchange by name, without a file (CLARISSE, section III-A) ------------------------

// A path that names no file but a data set: "hocket:/NAME".
constexpr std::string_view data_set_prefix = "hocket:/";
// NAME, where the path is of that kind; else nothing.
std::optional<std::string_view> data_set_of(std::string_view path);
// The server that keeps the data set, the same one for all who have the same map; nullptr where there are no servers.
// When servers come and go, a data set has another one only where the new one is its own, or the old one has gone.
const ServerMap::Server* home_of(const ServerMap& map, std::string_view data_set);

}  // namespace hocket::event
