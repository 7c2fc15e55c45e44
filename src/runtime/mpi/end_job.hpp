#pragma once

#include <mpi.h>

#include <string>

namespace hocket::runtime {

// One line on stderr, and the end of the job: through MPI_Abort where `in_mpi` (the thread that calls MPI), else by
// ending this process, which the launcher notices.
[[noreturn]] void end_job(const std::string& why, bool in_mpi);

// The same through MPI_Abort of `comm`. For the thread that calls MPI.
[[noreturn]] void abort_job(const std::string& why, MPI_Comm comm);

}  // namespace hocket::runtime
