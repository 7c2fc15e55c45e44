#include "runtime/malleable/watch.hpp"

#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/clock.hpp"
#include "runtime/depth.hpp"
#include "runtime/malleable/methods.hpp"
#include "runtime/mpi/end_job.hpp"
#include "runtime/signals_blocked.hpp"

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

// Precondition: the lock is held.
void Watch::start() {
  if (thread_.joinable() || stopping_) return;
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

std::optional<std::string> Watch::trouble(Time now) const {
  if (deadline_ && now > *deadline_)
    return what_ + " has not ended within " + std::to_string(static_cast<int>(to_s(limit_))) +
           " s (HOCKET_RESIZE_MAX_S): the job cannot go on";
  for (const auto& [pid, name] : needed_)
    if (!is_alive(pid)) return name + " (pid " + std::to_string(pid) + ") has died: the job cannot go on without it";
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

// Only the environment says before MPI_Init that a process was spawned.
LimitOfInit::LimitOfInit() {
  if (!std::getenv("HOCKET_SPAWNED")) return;
  const ResizeSettings settings = read_resize_settings(std::getenv, [](std::string_view) {});
  watch_.expect("MPI_Init of a process that is to join the application", settings.limit);
}

}  // namespace hocket::runtime
