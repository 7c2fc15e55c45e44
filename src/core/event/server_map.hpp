// The server map lists the I/O servers over which collective I/O is declustered. Each change of it is a new epoch
// (CLARISSE, section IV-A). The controller distributes it to all applications, which adopt it at control points.
//
// Its text form (SERVER_MAP) has one line per server, "NAME DIRECTORY ADDRESSES". In the directory, '%' and all bytes
// but printable ASCII are written as %XX. The addresses may hold spaces. " weight:N" follows unless the weight is full.
// The line of a server that is set aside ends with " slow:", which is older than the other reason. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "event/tuning.hpp"

namespace hocket::event {

// The share of the stripes of files that a server has, beside others (layout/stripes.hpp): 1 to `full_weight`.
constexpr int full_weight = 8;

struct ServerMap {
  struct MappedServer {
    std::string name;
    std::string directory;  // absolute; the server opens files below it only
    std::string addresses;  // on which it listens: "unix:/path tcp:host:port"
    // It is slow, or not assigned to the application, so no file of it uses the server for now. It stays the home of
    // its data sets, which nobody would find elsewhere.
    bool set_aside = false;
    int weight = full_weight;  // data sets are striped evenly
    friend bool operator==(const MappedServer&, const MappedServer&) = default;
  };
  std::int64_t epoch = 0;  // 0: no map was received. Rises by one with each change; a new hocketd starts again
  std::vector<MappedServer> servers;  // in order of arrival, for all applications; may be empty
  Tuning tuning{};                    // of the application that uses the map; not in its text
  friend bool operator==(const ServerMap&, const ServerMap&) = default;
};

// Longest text of a map in bytes, which fits a frame. The controller refuses a server that would exceed it.
constexpr std::size_t longest_server_map = 32'768;

// Returns the text form; parse_server_map() inverts it.
std::string text_of(const std::vector<ServerMap::MappedServer>& servers);
// Parses the text form. The error says which line is wrong.
Result<ServerMap> parse_server_map(std::int64_t epoch, std::string_view text);

// True if the file of this absolute path lies below the server's directory.
bool serves(const ServerMap::MappedServer& server, std::string_view path);

// ---- the servers of a file -----------------------------------------------------------------------------------------

// Most servers that one file uses.
constexpr std::size_t most_servers_of_file = 64;
// Returns the servers that serve the file of this absolute path, in the order of their names, which is the canonical
// one: it depends on no map's order of arrival. If there are more than `most_servers_of_file`, the first ones. Servers
// that are set aside are left out.
std::vector<ServerMap::MappedServer> servers_of(const ServerMap& map, std::string_view path);

// Identifies where the bytes of a file are among servers in the canonical order (layout/stripes.hpp). Two clients with
// the same placement send each byte to the same server.
using Placement = std::int64_t;
constexpr Placement unknown_placement = 0;
constexpr Placement one_server = 1;  // one server has all bytes
// Returns the placement among servers of these names and weights, given in the canonical order; unknown for no server.
// Weights with the same ratios place bytes alike. Precondition: there are as many weights as names, or none: they are
// equal then.
Placement placement_of(std::span<const std::string> names, std::span<const int> weights = {});

// Returns the placement of the file among the servers of the map that serve it; unknown if `server` is none of them.
Placement placement_at(const ServerMap& map, std::string_view path, std::string_view server);

// ---- data sets that applications exchange by name, without a file (CLARISSE, section III-A) ------------------------

// Prefix of a path that names a data set instead of a file: "hocket:/NAME".
constexpr std::string_view data_set_prefix = "hocket:/";
// Returns NAME, a part of `path`; nothing if the path names a file.
std::optional<std::string_view> data_set_of(std::string_view path);
// Returns the home of the data set, by highest random weight; nullptr if the map is empty. It is the same in all
// processes with the same map. When servers come and go, a data set's home moves only to a new server, or from one that
// has left.
const ServerMap::MappedServer* home_of(const ServerMap& map, std::string_view data_set);
// Returns the servers over which a new version of the data set is striped: the home, then by falling rank those of
// the others that are not set aside; at most `most_servers_of_file`. All have full weight, because a version keeps its
// stripes. Empty if the map is. `home` is the name of the home if it is another than home_of() says, because the data
// set was there before the map changed.
std::vector<ServerMap::MappedServer> servers_of_data_set(const ServerMap& map, std::string_view data_set,
                                                         std::string_view home = {});
// Returns all servers by falling rank for the data set; the first is the home. If the others of them come or go,
// their order stays.
std::vector<ServerMap::MappedServer> ranked_for(const ServerMap& map, std::string_view data_set);

}  // namespace hocket::event
