// What a running process was started with, so that another can be started like it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bus/local_socket.hpp"

namespace hocket::daemon {

struct ProcessImage {
  std::string program;  // path of the executable
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value", as it was at the start
  std::string directory;
  mode_t umask = 022;
  std::array<rlimit, RLIM_NLIMITS> limits{};
  bus::Fd out;  // what it writes to as stdout and stderr, open for writing
  bus::Fd err;
};

// Of the process `pid`, which must be this user's. Errors: it has ended, or is somebody else's.
Result<ProcessImage> image_of(pid_t pid);

// Without what an MPI launcher tells its own processes alone: a process that is started outside of it would take itself
// for one of them. Settings of the user stay (MPIR_CVAR_…, LD_PRELOAD, HOCKET_…).
std::vector<std::string> without_launcher(std::vector<std::string> environment);

// The launcher of the MPI that started the process, where a process started without one could not stand beside others
// of its kind: MPICH takes all that were started without a launcher for one and the same. "": none is needed, or found.
std::string launcher_of(pid_t pid);

}  // namespace hocket::daemon
