#include "malleable/watch.hpp"

#include <cstdlib>
#include <exception>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "intercept/services.hpp"
#include "malleable/methods.hpp"
#include "mpi_shim/depth.hpp"
#include "mpi_shim/end_job.hpp"
#include "mpi_shim/signals_blocked.hpp"

namespace hocket::runtime {
namespace {

// Time between two checks; a death is reported after two of them.
constexpr Duration between_looks = std::chrono::milliseconds{200};

// True if the process exists and is no zombie: the state letter behind its name in /proc says so.
bool is_alive(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  const std::size_t name_end = line.rfind(')');
  return name_end == line.npos || name_end + 2 >= line.size() ||
         (line[name_end + 2] != 'Z' && line[name_end + 2] != 'X');
}

}  // namespace

void Watch::need(std::vector<std::pair<int, std::string>> processes) {
  const std::lock_guard lock(mutex_);
  needed_ = std::move(processes);
  if (!needed_.empty()) start();
}

void Watch::expect(std::string what, Duration limit) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  limit_ = limit;
  deadline_ = node_now() + limit;
  start();
}

void Watch::done() {
  const std::lock_guard lock(mutex_);
  deadline_.reset();
}

void Watch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Precondition: the lock is held. Without a thread, waits have no limit: the other ranks must not wait for this one,
// which would stay behind with an error.
void Watch::start() try {
  if (thread_.joinable() || stopping_) return;
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
} catch (const std::system_error&) {
}

std::optional<std::string> Watch::trouble(Time now) const {
  if (deadline_ && now > *deadline_)
    return what_ + " has not ended within " + std::to_string(static_cast<int>(to_s(limit_))) +
           " s (HOCKET_RESIZE_MAX_S): the job cannot continue";
  for (const auto& [pid, name] : needed_)
    if (!is_alive(pid)) return name + " (pid " + std::to_string(pid) + ") has died: the job cannot continue without it";
  return std::nullopt;
}

void Watch::run() {
  const Inside inside;
  std::unique_lock lock(mutex_);
  // A reason must hold in two checks in a row: the message that a process no longer needs this one may arrive after it
  // has died.
  for (bool before = false; !stopping_;) {
    const auto why = trouble(node_now());
    if (why && before) end_job(*why, false);
    before = why.has_value();
    changed_.wait_for(lock, between_looks);
  }
}

namespace {

// Watches MPI_Init while it runs in a process that a resize started. Open MPI waits there for the processes that
// started this one; if they die meanwhile, it waits for ever, and so does its launcher. It is not destroyed at exit,
// because its own thread may end the process.
constinit Watch* init_watch = nullptr;

// Only the environment says before MPI_Init that a process was spawned.
void init_begins() noexcept try {
  if (!std::getenv("HOCKET_SPAWNED")) return;
  const ResizeSettings settings = read_resize_settings(std::getenv, [](std::string_view) {});
  init_watch = new Watch;
  init_watch->expect("MPI_Init of a joining process", settings.limit);
} catch (const std::exception&) {
  // Without memory or a thread, MPI_Init waits without a limit, as it does without hocket.
}

void init_has_ended() noexcept { delete std::exchange(init_watch, nullptr); }

}  // namespace

const InitService init_service = {init_begins, init_has_ended};

}  // namespace hocket::runtime
