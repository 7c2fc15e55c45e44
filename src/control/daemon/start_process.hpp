// Starts a program in a session of its own, which inherits nothing of this daemon but what the image says.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "daemon/process_image.hpp"

namespace hocket::daemon {

// A child that enters its directory and becomes the program. That takes as long as their file systems do.
struct StartedProcess {
  pid_t pid = 0;
  Fd outcome;  // a pipe, for `await_exec`
};

// Starts one process like the image, on a core (-1: any), with /dev/null as its stdin. Does not wait, and touches no
// file but /dev/null. The caller reaps it. Call it from the daemon's first thread: `ends_with_daemon` is about that
// one's end.
Result<StartedProcess> begin_process(const ProcessImage& image, std::int64_t core);

// Waits until the process runs the program; fails if it cannot, or does not until then. Blocks, so it is for a thread
// that may wait. `image` is the one that it was started with.
Status await_exec(const StartedProcess& started, const ProcessImage& image, Time until);

}  // namespace hocket::daemon
