// The leases by which the home of a striped version has the other servers keep its parts. A lease is an open handle of
// this server's connection to another one: so the parts end with the home, and the home learns when a server with parts
// is lost.
//
//   keep(): connect to the servers ─► leave out those that cannot be reached ─► ask each to keep a part ─► kept
//                                                                              one refuses: none keeps one ─► kept
//
// Connections are made in an I/O thread, and kept for later versions. All functions are called by the server's loop,
// and none blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/time.hpp"
#include "event/server_map.hpp"
#include "server/workers.hpp"
#include "transport/server_link.hpp"

namespace hocket::server {

class PartLeases {
 public:
  using MappedServers = std::vector<event::ServerMap::MappedServer>;
  // Functions that are called inside keep() and advance().
  struct LeaseCalls {
    // The servers of a version are known: the home, then those that keep a part each.
    std::function<void(std::uint64_t number, const MappedServers& servers)> kept;
    // A server was lost, with its parts of these versions.
    std::function<void(const event::ServerMap::MappedServer& server, const std::vector<std::uint64_t>& numbers)> lost;
  };
  // `secret_file` has the secret for connections over TCP; "": none. `workers` must outlive this object.
  PartLeases(Workers& workers, std::string secret_file, LeaseCalls calls);

  // Has the servers keep parts of the version; the first one is the home, which is this server.
  void keep(std::uint64_t number, MappedServers servers, Time now);
  // Ends the leases of a version, also while they are being made.
  void release(std::uint64_t number);
  // Sends and receives. Call it after each round of the loop, and when the descriptor is readable.
  void advance(Time now);
  int descriptor() const { return epoll_.get(); }
  const std::string& secret_file() const { return secret_file_; }

 private:
  // A connection to another server, by its addresses.
  struct LeaseLink {
    event::ServerMap::MappedServer server;
    std::unique_ptr<transport::ServerLink> link;                    // nullptr while the connection is made
    std::map<std::uint64_t, transport::ServerLink::Handle> leases;  // by number of the part
    short events = 0;                                               // that epoll watches
    Time quiet{};                                                   // when nothing was pending last
  };
  // A version whose servers are not known yet.
  struct Striping {
    MappedServers servers;
    bool asked = false;             // all connections are made or have failed
    std::set<std::string> awaited;  // addresses of those that have not answered
    bool refused = false;
  };
  using LinkMap = std::map<std::string, LeaseLink>;

  void connect(const event::ServerMap::MappedServer& server);
  void connected(const std::string& addresses, Result<std::unique_ptr<transport::ServerLink>> made, Time now);
  void ask_where_possible();
  void ask(std::uint64_t number, Striping& striping);
  void take(std::uint64_t number, const std::string& addresses, int error, transport::ServerLink::Handle handle);
  void end(std::uint64_t number, MappedServers servers);
  void watch(LeaseLink& one);
  void lose(LinkMap::iterator link);

  Workers& workers_;
  const std::string secret_file_;
  const LeaseCalls calls_;
  Fd epoll_;
  LinkMap links_;
  std::map<std::uint64_t, Striping> stripings_;  // by number of the parts
  Time now_{};                                   // of the latest call
};

}  // namespace hocket::server
