// The parts of other servers' data sets that this server keeps. The home of a version has each part kept by a lease: an
// open handle of its connection to this server. When the lease ends, because the home has forgotten the version or is
// lost, so does the part. Clients that read it then keep what they have open, so that none of them meets its end.
//
// Used by the server's loop only.
#pragma once

#include <cstdint>
#include <map>

#include "server/data_sets.hpp"
#include "server/engine.hpp"
#include "transport/server_link.hpp"

namespace hocket::server {

class DataSetParts {
 public:
  // `sets` counts the memory. Both must outlive this object.
  DataSetParts(DataSets& sets, Files& files) : sets_(sets), files_(files) {}

  // The result of keep() and open(): errno, or a file of which one handle belongs to the caller.
  struct Opened {
    int error = 0;
    FilePtr file{};
  };
  // Begins to keep a part, whose lease belongs to the session. EINVAL: invalid numbers, or a number that is in use;
  // ENOSPC: no memory for it, or data sets are refused.
  Opened keep(const transport::KeptPart& part, SessionId home);
  // Opens a part, as ServerLink::open_part states.
  Opened open(std::uint64_t number, bool writes, std::int64_t length);
  struct Grown {
    int error = 0;
    std::int64_t freed = 0;  // bytes that became free, which the caller gives back to the data sets
  };
  // Reserves memory before bytes up to `end` are written. ENOSPC: there is no room, and the part is freed; ECANCELED:
  // it was freed before.
  Grown grow(std::uint64_t number, std::int64_t end);
  // Notes that a reader's handle of the part was closed. Returns the bytes that became free, as the others do.
  std::int64_t read(std::uint64_t number);
  // Ends the lease of one part, or all leases of a session that has disconnected.
  std::int64_t release(std::uint64_t number);
  std::int64_t gone(SessionId home);

  std::size_t count() const { return parts_.size(); }

 private:
  struct HeldPart {
    FilePtr file;
    SessionId home = 0;
    std::int64_t bytes = 0;
    int readers = 0;  // handles of clients that read it
    bool leased = true;
  };
  using PartMap = std::map<std::uint64_t, HeldPart>;

  std::int64_t forget_if_unused(PartMap::iterator part);

  DataSets& sets_;
  Files& files_;
  PartMap parts_;  // by number
};

}  // namespace hocket::server
