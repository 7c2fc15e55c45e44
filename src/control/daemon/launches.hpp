// Starts programs for a thread that must not wait. What is to be started, and where, may lie on a network file system
// that hangs: a look at a file, exec, and even the close of an output then take as long as it does.
//
//   begin ──► thread: prepare ──► collect: fork ──► thread: wait for exec, close the outputs ──► collect: the outcome
//
// The owner's thread forks: `ends_with_daemon` of an image is about that thread. One thread calls all functions;
// nothing throws.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "daemon/process_image.hpp"
#include "link/later.hpp"

namespace hocket::daemon {

// A program, and the core of each process that is to run it (-1: any).
struct LaunchPlan {
  ProcessImage image;
  std::vector<std::int64_t> cores;
  bool by_launcher = false;  // true if the program is the launcher of another one
};

class Launches {
 public:
  // Most threads at a time. A file system that hangs keeps each until it answers.
  static constexpr int most_threads = 32;

  using Prepare = std::function<Result<LaunchPlan>()>;
  // The outcome of a launch. All of its processes run their program, or none does.
  struct LaunchOutcome {
    std::uint64_t number = 0;
    std::vector<pid_t> pids{};
    bool by_launcher = false;
    std::string error{};     // "": they run
    std::size_t failed = 0;  // which process, counted from 1; 0: none was begun
  };

  // `limit`: for exec of all processes of a launch. They are killed after that.
  explicit Launches(Duration limit = std::chrono::seconds{30});

  // Returns a descriptor that is readable when there is something to `collect`.
  int descriptor() const { return ready_->get(); }
  // Makes `descriptor` readable. Any thread may call what it returns, also after the end of this object.
  std::function<void()> waker() const;
  // Has a thread prepare a launch, and returns its number. Fails if too many threads wait already.
  Result<std::uint64_t> begin(Prepare prepare);
  // Kills the processes of a launch. It has no outcome.
  void drop(std::uint64_t number);
  // True if the process belongs to this launch, whose outcome is not known yet.
  bool has(std::uint64_t number, std::int64_t pid) const;
  // Starts what was prepared, and returns the outcomes. The caller reaps the processes that run, and may have ended.
  std::vector<LaunchOutcome> collect();
  // Collects killed processes. Call it after SIGCHLD.
  void reap();

 private:
  struct Exec {
    std::size_t failed = 0;  // the process, counted from 1; 0: none
    std::string error;
  };
  struct UnderWay {
    std::optional<link::Later<LaunchPlan>> preparing{};
    std::optional<link::Later<Exec>> starting{};
    std::vector<pid_t> pids{};
    bool by_launcher = false;
  };

  // Returns the outcome if it is known.
  std::optional<LaunchOutcome> go_on(UnderWay& one);
  void fork_all(UnderWay& one, LaunchPlan launch);
  // Begins to count a thread; what it returns ends that, and wakes the owner.
  std::function<void()> count_thread();
  void kill_all(const std::vector<pid_t>& pids);

  Duration limit_;
  std::shared_ptr<Fd> ready_;  // eventfd
  std::shared_ptr<std::atomic<int>> threads_ = std::make_shared<std::atomic<int>>(0);
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, UnderWay> under_way_;
  std::vector<pid_t> killed_;
};

}  // namespace hocket::daemon
