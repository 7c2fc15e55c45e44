// Finds the I/O servers, for a program that is no member of hocketd. Each call is independent of others and
// thread-safe; only lack of memory throws.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "event/server_map.hpp"

namespace hocket::api {

// Asks the hocketd of this node for its servers: its list (LIST) shows those that are up, in the order of the server
// map. The epoch of the result is 0. Takes at most 7 s.
Result<event::ServerMap> ask_for_servers();

// Reads the servers that a caller names: the text of a server map, or the addresses of one server, which is then taken
// to serve every directory.
Result<event::ServerMap> read_servers(std::string_view text);

}  // namespace hocket::api
