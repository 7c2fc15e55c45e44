// Ends a job that cannot continue, after a message on stderr. Before MPI_Abort it waits until the launcher has read the
// message, up to a time limit (last_words.hpp).
#pragma once

#include <mpi.h>

#include <string>

namespace hocket::runtime {

// Writes one line to stderr and ends the job. `in_mpi` is true in the thread that calls MPI: it uses MPI_Abort. Another
// thread ends this process, which the launcher notices.
[[noreturn]] void end_job(const std::string& why, bool in_mpi);

// Writes one line to stderr and calls MPI_Abort on `comm`. For the thread that calls MPI.
[[noreturn]] void abort_job(const std::string& why, MPI_Comm comm);

}  // namespace hocket::runtime
