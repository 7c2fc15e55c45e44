// What processes have spent on computing and on communication since they began.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace hocket::runtime {

// One process.
struct Spent {
  Duration cpu{};  // neither MPI communication nor I/O nor waiting for grants
  Duration comm{};
};

// Several: sums, and the largest of one.
struct SpentByAll {
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
