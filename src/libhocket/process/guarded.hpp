// Runs a public function of libhocket that uses MPI and the connection to hocketd.
#pragma once

#include <utility>

#include "api/status.hpp"
#include "mpi_shim/depth.hpp"

namespace hocket::runtime {

// As api::guarded. A signal handler that interrupts the call passes by libhocket, whose locks this thread may hold.
template <class Call>
int guarded(Call&& call) noexcept {
  const Inside inside;
  return api::guarded(std::forward<Call>(call));
}

}  // namespace hocket::runtime
