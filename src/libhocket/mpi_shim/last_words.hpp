// Gets the last message of a process out before the process ends its job by MPI_Abort.
//
// If the launcher learns of the abort first, it may end without forwarding what the process wrote. MPICH's launcher
// does so now and then, when another process of the job died at the same moment. The user would not learn the reason.
#pragma once

#include "base/time.hpp"

namespace hocket::runtime {

// The time limit of an abort for this wait.
inline constexpr Duration last_words_limit = std::chrono::milliseconds{500};

// Blocks until the data written to `fd` has been read, at most for `limit`. Returns immediately if `fd` is no pipe.
void wait_until_read(int fd, Duration limit);

}  // namespace hocket::runtime
