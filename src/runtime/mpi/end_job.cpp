#include "runtime/mpi/end_job.hpp"

#include <unistd.h>

#include "runtime/last_words.hpp"
#include "runtime/mpi/pmpi.hpp"
#include "runtime/mpi/process.hpp"

namespace hocket::runtime {

void end_job(const std::string& why, bool in_mpi) {
  Process::warn(why);
  if (in_mpi) {
    wait_until_read(STDERR_FILENO, last_words_limit);
    HOCKET_PMPI(Abort)(mpi::world(), 1);
  }
  _exit(1);
}

}  // namespace hocket::runtime
