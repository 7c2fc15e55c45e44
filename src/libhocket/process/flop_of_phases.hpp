// Counts the floating-point operations of I/O phases: all processes add up their counters when a phase begins.
//
// Thread-safe unless stated otherwise.
#pragma once

#include <mpi.h>

#include "process/reporter.hpp"
#include "session/settings.hpp"

namespace hocket::runtime {

// Opens the counters of this process. Called once, in MPI_Init.
void open_flop_counter(FlopEvents events);
void close_flop_counter();
// Closes the counters in the child of a fork(), without a lock.
void abandon_flop_counter() noexcept;

// Returns true if floating-point operations are to be counted now. That is so if the latest operation is the first of
// its phase, and this process can read its counters. `reporter` may be nullptr.
bool phase_wants_flop(Reporter* reporter) noexcept;
// Adds up the floating-point operations of all processes of `comm` for the phase that has begun; none means this
// process alone. Collective over `comm`; it waits for the others. `root` stores the sum if these are all computing
// processes and each could read its counters.
void count_flop(MPI_Comm comm, bool root) noexcept;

}  // namespace hocket::runtime
