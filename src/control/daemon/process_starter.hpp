// Starts processes that will join an application from outside its MPI job (START_PROCESSES), and detects their end.
//
// A new process resembles the one that requested it: program, arguments, environment, working directory, umask,
// limits, stdout and stderr. Its stdin is /dev/null. It starts on the core of its place if one is given. It has a
// session of its own and outlives this daemon, because an application never depends on the daemon. Nothing waits for a
// file system (launches.hpp). Not thread-safe. The daemon must call `reap` after SIGCHLD.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "daemon/launches.hpp"
#include "event/event.hpp"

namespace hocket::daemon {

// Holds the started processes until they have ended.
class ProcessStarter {
 public:
  ProcessStarter() = default;
  // `limit`: until the processes of a request run their program.
  explicit ProcessStarter(Duration limit) : launches_(limit) {}

  // Begins to start all requested processes or none; the error says why. A later failure comes from `collect`.
  Status start(const event::StartProcesses& asked);
  // Kills the processes of the request that still run, together with their process groups (SIGKILL).
  void stop(AppId app, RequestId request);
  // Returns a descriptor that is readable when there is something to `collect`.
  int descriptor() const { return launches_.descriptor(); }
  // Continues what was begun. Returns one PROCESS_FAILED for each request of which no process runs, and what `reap`
  // returns.
  std::vector<event::ProcessFailed> collect();
  // Collects the exit codes of ended processes. Returns one PROCESS_FAILED for each, even if no application awaits
  // it.
  std::vector<event::ProcessFailed> reap();

 private:
  struct AskedProcesses {
    AppId app;  // none: the processes belong to an earlier join
    RequestId request;
    std::int64_t count = 0;
  };
  struct Child {
    pid_t pid;
    AppId app;  // none, as above
    RequestId request;
    bool by_launcher = false;  // true if it is the launcher of the process
  };

  Launches launches_;
  std::map<std::uint64_t, AskedProcesses> starting_;  // by the number of the launch
  std::vector<Child> children_;
};

}  // namespace hocket::daemon
