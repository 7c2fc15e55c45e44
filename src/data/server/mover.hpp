// Copies the published versions of a data set to another home, and has it adopt them (moved_name.hpp). It is a client
// of that server like any other, and of the servers that keep parts of the versions. The copies are striped anew.
//
// Blocks, so it runs in a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "event/server_map.hpp"
#include "server/moved_name.hpp"

namespace hocket::server {

using MappedServers = std::vector<event::ServerMap::MappedServer>;

// What is to be moved, and where to.
struct DataSetMove {
  // Where the bytes of a version are.
  struct Source {
    Fd memory;                // of the stripes at this server; invalid: the bytes are lost
    std::int64_t length = 0;  // of the version
    std::uint64_t parts = 0;  // number of its parts at other servers
    MappedServers servers{};  // that have its stripes, this one first; empty: this one has all
  };
  MovedName moved;
  std::vector<Source> sources;  // of each version
  MappedServers to;             // the new home, then others over which the copies are striped
  std::string secret_file;      // for connections over TCP; "": none
};

// Carries the move out. Returns why it was not done, for people; "": the new home has adopted the name. It has then
// adopted nothing, or will be asked by nobody: it drops the copies. The result may be unknown if the new home is lost
// while it adopts. `gives_up` ends the move early. Takes half a minute more if a server is silent.
std::string carry_out(const DataSetMove& move, const std::atomic<bool>& gives_up);

}  // namespace hocket::server
