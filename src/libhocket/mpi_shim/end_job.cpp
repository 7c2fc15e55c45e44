#include "mpi_shim/end_job.hpp"

#include <unistd.h>

#include "mpi_shim/last_words.hpp"
#include "mpi_shim/pmpi.hpp"
#include "mpi_shim/warn.hpp"

namespace hocket::runtime {

void abort_job(const std::string& why, MPI_Comm comm) {
  warn(why);
  wait_until_read(STDERR_FILENO, last_words_limit);
  HOCKET_PMPI(Abort)(comm, 1);
  _exit(1);
}

void end_job(const std::string& why, bool in_mpi) {
  if (in_mpi) abort_job(why, mpi::world());
  warn(why);
  _exit(1);
}

}  // namespace hocket::runtime
