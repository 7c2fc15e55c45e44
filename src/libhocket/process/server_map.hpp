// Gives the latest server map that hocketd has sent, and reports to hocketd which map is in use.
//
// Only a process with a connection to hocketd receives maps: rank 0 of a world, and rank 0 of a file's communicator
// that sends requests. At a control point, that rank decides which map is used from there on, and broadcasts it. A map
// that hocketd sent before a grant is here when the grant is here.
//
// Thread-safe, no exceptions. Blocks at most as long as any message to hocketd: 2 s if hocketd is stopped. May be
// called whenever hot.is_active() is true.
#pragma once

#include <cstdint>
#include <memory>

#include "event/event.hpp"
#include "event/server_map.hpp"

namespace hocket::runtime {

// Returns the latest map, with epoch 0 and no servers before the first. Never null. The pointer stays the same until
// another map comes. Compare pointers, not epochs, because a new hocketd counts its epochs anew. The call takes in
// messages that have come.
std::shared_ptr<const event::ServerMap> server_map() noexcept;

// Returns the latest map in any process of an application that is reported: a process without a connection joins first.
std::shared_ptr<const event::ServerMap> joined_server_map();

// Reports to hocketd the oldest epoch that files of which this process is rank 0 still use, and what accesses use of a
// policy's settings. Operations of older epochs have ended for good. Call it when a map is used for the first time,
// whenever that epoch rises, and with 0 when no file uses servers any more. `hocket servers drain` waits only for
// processes that have reported a lower epoch.
void map_adopted(event::MapAdopted said) noexcept;

}  // namespace hocket::runtime
