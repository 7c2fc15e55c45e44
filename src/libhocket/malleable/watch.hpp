// Ends this process, and with it the job, when an MPI call waits for something that cannot happen: a process that it
// needs has died without the launcher's knowledge, or a reconfiguration exceeds its time limit. One line on stderr says
// why.
//
// MPI has no time limit for such waits. A thread that checks every 200 ms starts when there is something to watch, with
// all signals blocked. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/time.hpp"

namespace hocket::runtime {

// One set of needed processes and one time limit. stop() ends the thread for good.
class Watch {
 public:
  Watch() = default;
  ~Watch() { stop(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Sets the processes of this node that must be alive: process id and a name for the message. Replaces the previous
  // set.
  void need(std::vector<std::pair<int, std::string>> processes);
  // Starts a time limit: done() must be called within `limit`. A new call replaces the previous limit.
  void expect(std::string what, Duration limit);
  // Ends the time limit.
  void done();
  void stop();

 private:
  void start();
  void run();
  // Returns the reason to end the job, if there is one. The lock is held.
  std::optional<std::string> trouble(Time now) const;

  std::mutex mutex_;  // guards all that follows but thread_
  std::condition_variable changed_;
  std::vector<std::pair<int, std::string>> needed_;
  std::string what_;
  Duration limit_{};
  std::optional<Time> deadline_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hocket::runtime
