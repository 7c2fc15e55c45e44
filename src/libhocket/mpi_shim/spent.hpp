// The time that processes have spent on computing and on communication since they began. Rank 0 of a file collects it
// from all ranks at the end of a granted collective access, and IO_PHASE reports it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::runtime {

// The times of one process.
struct Spent {
  Duration cpu{};   // elapsed time without MPI communication, I/O and waits for grants
  Duration comm{};  // MPI communication
};

// The times of several processes: sums, and the largest of any one process.
struct SpentTotals {
  std::int64_t processes = 0;
  Duration cpu{};
  Duration comm{};
  Duration cpu_most{};
  Duration comm_most{};

  void add(const Spent& one) {
    ++processes;
    cpu += one.cpu;
    comm += one.comm;
    cpu_most = std::max(cpu_most, one.cpu);
    comm_most = std::max(comm_most, one.comm);
  }
};

}  // namespace hocket::runtime
