#include "runtime/mpi/end_job.hpp"

#include <unistd.h>

#include "runtime/last_words.hpp"
#include "runtime/mpi/pmpi.hpp"
#include "runtime/mpi/process.hpp"

namespace hocket::runtime {

void abort_job(const std::string& why, MPI_Comm comm) {
  Process::warn(why);
  wait_until_read(STDERR_FILENO, last_words_limit);
  HOCKET_PMPI(Abort)(comm, 1);
  _exit(1);
}

void end_job(const std::string& why, bool in_mpi) {
  if (in_mpi) abort_job(why, mpi::world());
  Process::warn(why);
  _exit(1);
}

}  // namespace hocket::runtime
