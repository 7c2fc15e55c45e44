// Which I/O servers there are, for a program that is no member of hocketd.
//
// Nothing throws but for memory; each call stands for itself.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "event/server_map.hpp"

namespace hocket::api {

// The servers of the map of the hocketd of this node now, as its list (LIST) shows those that are up, in the map's
// order; the epoch is 0. Takes 7 s at most.
Result<event::ServerMap> ask_for_servers();

// What a caller names: a map's text, or the addresses of one server, which then serves any directory that it serves.
Result<event::ServerMap> read_servers(std::string_view text);

}  // namespace hocket::api
