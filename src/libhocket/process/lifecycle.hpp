// Begins and ends the work of libhocket in this process.
//
// Thread-safe. Between the two calls, `hot.is_active()` is true.
#pragma once

#include "base/time.hpp"
#include "mpi_shim/spent.hpp"

namespace hocket::runtime {

// Starts watching after MPI_Init. Rank 0 of a world connects to hocketd, without waiting for an answer.
void initialised() noexcept;
// Stops watching before MPI_Finalize, and reports the sums of all processes. Collective over the world. It does nothing
// in a process that is not watched.
void finalising() noexcept;

// Returns the time that this process has spent until `now`. Precondition: at `now` the thread was in no MPI call, and
// all earlier calls are counted.
Spent spent(Time now) noexcept;

}  // namespace hocket::runtime
