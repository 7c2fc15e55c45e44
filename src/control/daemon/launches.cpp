#include "daemon/launches.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/clock.hpp"
#include "daemon/start_process.hpp"

namespace hocket::daemon {
namespace {

// The processes whose exec a thread awaits. It closes the outputs of the image, too.
struct Forked {
  LaunchPlan launch;
  std::vector<StartedProcess> processes;
  std::string error;  // why the next process was not begun
};

}  // namespace

Launches::Launches(Duration limit)
    : limit_(limit), ready_(std::make_shared<Fd>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {}

std::function<void()> Launches::waker() const {
  return [ready = ready_] { eventfd_write(ready->get(), 1); };
}

std::function<void()> Launches::count_thread() {
  ++*threads_;
  return [wake = waker(), threads = threads_] {
    --*threads;
    wake();
  };
}

Result<std::uint64_t> Launches::begin(Prepare prepare) {
  if (threads_->load() >= most_threads)
    return Error{fmt::format("{} programs are being started already: does a file system hang?", most_threads)};
  const std::uint64_t number = ++last_;
  under_way_[number].preparing = link::Later<LaunchPlan>::begin(std::move(prepare), count_thread());
  return number;
}

void Launches::kill_all(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    kill(pid, SIGKILL);
    kill(-pid, SIGKILL);  // a child leads its own process group, once it has begun a session
    killed_.push_back(pid);
  }
}

void Launches::drop(std::uint64_t number) {
  const auto found = under_way_.find(number);
  if (found == under_way_.end()) return;
  kill_all(found->second.pids);
  under_way_.erase(found);
  reap();
}

bool Launches::has(std::uint64_t number, std::int64_t pid) const {
  const auto found = under_way_.find(number);
  return found != under_way_.end() && std::ranges::count(found->second.pids, pid) > 0;
}

std::vector<Launches::LaunchOutcome> Launches::collect() {
  eventfd_t ignored = 0;
  eventfd_read(ready_->get(), &ignored);
  std::vector<LaunchOutcome> outcomes;
  for (auto one = under_way_.begin(); one != under_way_.end();) {
    auto outcome = go_on(one->second);
    if (!outcome) {
      ++one;
      continue;
    }
    outcome->number = one->first;
    outcomes.push_back(std::move(*outcome));
    one = under_way_.erase(one);
  }
  reap();
  return outcomes;
}

std::optional<Launches::LaunchOutcome> Launches::go_on(UnderWay& one) {
  if (one.preparing) {
    auto prepared = one.preparing->take();
    if (!prepared) return std::nullopt;
    one.preparing.reset();
    if (!*prepared) return LaunchOutcome{.error = prepared->error().text};
    fork_all(one, std::move(*prepared).value());
  }
  auto waited = one.starting->take();
  if (!waited) return std::nullopt;
  const Exec exec = *waited ? std::move(*waited).value() : Exec{1, waited->error().text};
  if (exec.error.empty()) return LaunchOutcome{.pids = std::move(one.pids), .by_launcher = one.by_launcher};
  kill_all(one.pids);
  return LaunchOutcome{.error = exec.error, .failed = exec.failed};
}

void Launches::fork_all(UnderWay& one, LaunchPlan launch) {
  auto all = std::make_shared<Forked>();
  all->launch = std::move(launch);
  one.by_launcher = all->launch.by_launcher;
  for (const std::int64_t core : all->launch.cores) {
    auto started = begin_process(all->launch.image, core);
    if (!started) {
      all->error = started.error().text;
      break;
    }
    one.pids.push_back(started.value().pid);
    all->processes.push_back(std::move(started).value());
  }
  const Time until = node_now() + limit_;
  // The thread alone keeps `all`: its end closes the outputs.
  one.starting = link::Later<Exec>::begin(
      [all = std::move(all), until]() -> Result<Exec> {
        for (std::size_t i = 0; i < all->processes.size(); ++i) {
          const Status runs = await_exec(all->processes[i], all->launch.image, until);
          if (!runs) return Exec{i + 1, runs.error().text};
        }
        return Exec{all->processes.size() + 1, all->error};
      },
      count_thread());
}

void Launches::reap() {
  std::erase_if(killed_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace hocket::daemon
