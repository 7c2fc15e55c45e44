// Tells if the MPI of this process is the one that this libhocket is built for. A launcher of one MPI may start a
// program of another, whose handles have other sizes and values. Then libhocket stands aside: its wrappers pass each
// call on as it came, and nothing else of it ever runs.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace hocket::runtime {

enum class ProcessMpi : std::uint8_t { unknown, ours, other };
inline constinit std::atomic<ProcessMpi> process_mpi = ProcessMpi::unknown;

// Looks at the loaded libraries, and says in one line if libhocket stands aside. The first MPI call of a process needs
// it: mpi4py loads its MPI only then.
ProcessMpi find_process_mpi() noexcept;

// Costs one load, but for the first MPI call of the process.
inline bool is_our_mpi() {
  const ProcessMpi known = process_mpi.load(std::memory_order_relaxed);
  return (known == ProcessMpi::unknown ? find_process_mpi() : known) == ProcessMpi::ours;
}

}  // namespace hocket::runtime
