// Ends this process, and with it the job, when what it waits for in MPI cannot come: a process that it needs has died
// without the launcher's knowing, or a reconfiguration takes too long. One line says why.
//
// MPI has no bound of its own for such waits. The thread is started when there is something to watch, with all signals
// blocked. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/time.hpp"

namespace hocket::runtime {

class Watch {
 public:
  Watch() = default;
  ~Watch() { stop(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Processes of this node that must be alive, each with what it is; replaces those before.
  void need(std::vector<std::pair<int, std::string>> processes);
  // From now on for `limit`, `what` must be over (`done`).
  void expect(std::string what, Duration limit);
  void done();
  void stop();

 private:
  void start();
  void run();
  // Why it cannot go on; nothing while it can.
  std::optional<std::string> trouble(Time now) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<int, std::string>> needed_;
  std::string what_;
  Duration limit_{};
  std::optional<Time> deadline_;
  bool stopping_ = false;
  std::thread thread_;
};

// While it lives: the limit of MPI_Init in a process that a resize started. Open MPI waits there for the processes that
// started this one, for ever if they die meanwhile, and so does its launcher then.
class LimitOfInit {
 public:
  LimitOfInit();

 private:
  Watch watch_;
};

}  // namespace hocket::runtime
