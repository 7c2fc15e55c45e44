// Starts processes that will join an application from outside its MPI job (START_PROCESSES), and detects their end.
//
// A new process resembles the one that requested it: program, arguments, environment, working directory, umask,
// limits, stdout and stderr. Its stdin is /dev/null. It starts on the core of its place if one is given. It has a
// session of its own and outlives this daemon, because an application never depends on the daemon. Not thread-safe.
// The daemon must have no other children, and must call `reap` after SIGCHLD.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

// Holds the started processes until they have ended.
class ProcessStarter {
 public:
  // Starts all requested processes or none; the error says why. Blocks until each process has executed its program.
  Status start(const event::StartProcesses& asked);
  // Kills the processes of the request that still run, together with their process groups (SIGKILL).
  void stop(AppId app, RequestId request);
  // Collects the exit codes of ended processes. Returns one PROCESS_FAILED for each, even if no application awaits
  // it.
  std::vector<event::ProcessFailed> reap();

 private:
  struct Child {
    pid_t pid;
    AppId app;  // none: the process belongs to an earlier join
    RequestId request;
    bool by_launcher = false;  // true if it is the launcher of the process
  };

  std::vector<Child> children_;
};

}  // namespace hocket::daemon
