// What a process says before it ends its job by MPI_Abort.
//
// A launcher that hears of the abort first may end without having passed on what the process wrote (MPICH's does so now
// and then, when another process of the job died at the same moment): the job would be over and nobody told why.
#pragma once

#include "base/time.hpp"

namespace hocket::runtime {

// How long an abort waits for it at most.
inline constexpr Duration last_words_limit = std::chrono::milliseconds{500};

// Returns as soon as what was written to `fd` has been read, after `limit` at the latest; at once where `fd` is no
// pipe.
void wait_until_read(int fd, Duration limit);

}  // namespace hocket::runtime
