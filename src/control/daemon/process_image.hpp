// Describes what a running process was started with, so that another one can be started like it. The source is /proc.
// Linux only.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bus/local_socket.hpp"

namespace hocket::daemon {

// A snapshot of a process. `out` and `err` are owned; everything else is copied.
struct ProcessImage {
  std::string program;  // path of the executable, free of symbolic links
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value" as it was at the start of the process
  std::string directory;
  mode_t umask = 022;
  std::array<rlimit, RLIM_NLIMITS> limits{};
  bus::Fd out;  // its stdout and stderr, open for writing
  bus::Fd err;
  bool ends_with_daemon = false;  // SIGTERM ends it when the process `daemon` ends, its parent
  pid_t daemon = 0;
};

// Returns the image of the process `pid`, which must belong to this user. Returns an error if the process has ended,
// belongs to another user, or its executable was replaced.
Result<ProcessImage> image_of(pid_t pid);

// Returns the environment without the variables that an MPI launcher sets for its own processes. A process started
// outside the launcher would otherwise take itself for one of them. Settings of the user stay (MPIR_CVAR_…,
// LD_PRELOAD, HOCKET_…).
std::vector<std::string> without_launcher(std::vector<std::string> environment);

// Returns the path of the launcher that new processes need, or "" if none is needed or found. MPICH needs one: it
// takes all processes that were started without a launcher for one and the same. Looks at up to eight ancestors of
// `pid`.
std::string launcher_of(pid_t pid);

}  // namespace hocket::daemon
