// The server map as this process has heard of it from hocketd, and its word that it uses it.
//
// Only a process with a connection to hocketd hears of maps: rank 0 of a world, and rank 0 of a file's communicator
// that asks for grants. That rank decides at a control point which map is used from there on, and tells the others.
// Maps that were sent before a grant have come when the grant has come.
//
// Thread-safe, no exceptions. Waits no longer than any word to hocketd does (2 s where it is stopped). May be called
// whenever Process::active() is true.
#pragma once

#include <cstdint>
#include <memory>

#include "event/server_map.hpp"

namespace hocket::runtime {

// The map that came last; epoch 0 and no servers where none has come. Never null. The same pointer as long as no other
// map has come; compare pointers, not epochs: a new hocketd counts its epochs anew. Looks once whether another has
// come.
std::shared_ptr<const event::ServerMap> server_map() noexcept;

// Tells hocketd the oldest epoch that files of which this process is rank 0 still use: operations of older ones are
// over for good. To be called when a map is used for the first time, whenever that epoch rises, and with 0 when no file
// uses servers any more (`hocket servers drain` waits for those that have said a lower epoch, and for nobody else).
void map_adopted(std::int64_t epoch) noexcept;

}  // namespace hocket::runtime
