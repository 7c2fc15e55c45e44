// Starts processes that are to join an application outside of its MPI (START_PROCESSES), and notices their end.
//
// A process runs like the one that asks: its program, arguments, environment, working directory, umask, limits, stdout
// and stderr; stdin is /dev/null. It starts on the core of its place, where one is given. It is in a session of its own
// and outlives this daemon: an application never depends on it. Not thread-safe; the process must have no other
// children, and SIGCHLD leads to `reap`.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

class ProcessStarter {
 public:
  // Starts all of them, or none: the error says why. It waits until each has become the program.
  Status start(const event::StartProcesses& asked);
  // Ends those of that request that still run, and what they started.
  void stop(AppId app, RequestId request);
  // Takes the exit codes of those that have ended; one PROCESS_FAILED each, whether or not it is still of interest.
  std::vector<event::ProcessFailed> reap();

 private:
  struct Child {
    pid_t pid;
    AppId app;  // none: it has joined, or was stopped
    RequestId request;
    bool by_launcher = false;  // it is the launcher of the process
  };

  std::vector<Child> children_;
};

}  // namespace hocket::daemon
