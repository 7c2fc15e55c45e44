// Finds the server that is the home of a data set. That is the one with the highest weight in the server map
// (event::home_of), unless another one had become it before the map changed: names stay where they are while servers
// come, and move when a server is drained. So a process asks the servers that come first by weight.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "event/server_map.hpp"
#include "io_client/waiting.hpp"

namespace hocket::io_client {

// Servers that are asked at most: the home moves by one place in the order for each server that comes before it.
inline constexpr std::size_t most_asked_homes = 4;

// Keeps its connections, because an opening that waits asks again and again.
class HomeFinder {
 public:
  // `secret` is that of the servers (transport/proof.hpp).
  explicit HomeFinder(std::string secret) : secret_(std::move(secret)) {}

  // Returns the servers of a new version of the data set, its home first (event::servers_of_data_set). Empty: the map
  // is, or all servers are drained and none is its home. A server that does not answer within 2 s is none of those that
  // are asked second; if it comes first, it counts as the home, so that joining reports the fault. Blocks for some
  // seconds at most, unless the first server is silent (waiting.hpp).
  std::vector<event::ServerMap::MappedServer> find(const event::ServerMap& map, std::string_view data_set,
                                                   WaitStrategy&& how);

 private:
  enum class HomeAnswer { none, is_home, can_be_home, drained };
  using MappedServers = std::vector<event::ServerMap::MappedServer>;

  std::vector<HomeAnswer> ask(const MappedServers& servers, std::string_view data_set, WaitStrategy& how);

  std::string secret_;
  std::vector<ServedFile> files_;
};

}  // namespace hocket::io_client
