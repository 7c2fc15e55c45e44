#include "mpi_shim/our_mpi.hpp"

#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "mpi_shim/calls.hpp"
#include "mpi_shim/next.hpp"
#include "mpi_shim/warn.hpp"

namespace hocket::runtime {
namespace {

// Each library with the binary interface of an MPI must export the symbol, because mpi.h makes programs use it
// (MPI_COMM_WORLD of Open MPI, MPI_DUP_FN of MPICH). The library of MPICH with MPI's standard binary interface has
// neither.
constexpr const char* openmpi_symbol = "ompi_mpi_comm_world";
constexpr const char* mpich_symbol = "MPIR_Dup_fn";
#ifdef OPEN_MPI
constexpr const char* our_symbol = openmpi_symbol;
constexpr const char* other_symbol = mpich_symbol;
constexpr std::array rank_variables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
#else
constexpr const char* our_symbol = mpich_symbol;
constexpr const char* other_symbol = openmpi_symbol;
constexpr std::array rank_variables = {"PMI_RANK", "PMIX_RANK"};
#endif

const void* library_of(const void* address) {
  Dl_info info{};
  return address && dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

bool is_ours_loaded() {
  const void* const ours = find_loaded(our_symbol);
  if (!ours || !find_loaded(other_symbol)) return ours != nullptr;
  // Both are loaded. The program's calls reach the one that comes first behind libhocket.
  return library_of(ours) == library_of(dlsym(RTLD_NEXT, "PMPI_Init"));
}

// True in the process that the launcher numbers 0, and where no launcher gives a number. MPI itself cannot be asked.
// Slurm numbers the processes of a program for the PMI that its user names, whatever MPI the program has.
bool is_first_process() {
  for (const char* const variable : rank_variables)
    if (const char* const rank = std::getenv(variable)) return std::strcmp(rank, "0") == 0;
  return true;
}

}  // namespace

ProcessMpi find_process_mpi() noexcept {
  const ProcessMpi found = is_ours_loaded() ? ProcessMpi::ours : ProcessMpi::other;
  const bool first = process_mpi.exchange(found, std::memory_order_relaxed) == ProcessMpi::unknown;
  if (found == ProcessMpi::other && first && is_first_process())
    warn(std::string(program_invocation_short_name) + " does not use " + mpi::name +
         ", the MPI that it was started for: it runs uncoordinated; start it with the mpiexec of its own MPI");
  return found;
}

}  // namespace hocket::runtime
