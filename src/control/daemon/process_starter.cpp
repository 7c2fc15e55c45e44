#include "daemon/process_starter.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/host_name.hpp"
#include "base/places.hpp"
#include "daemon/process_image.hpp"

namespace hocket::daemon {
namespace {

// Returns one place for each requested process; all must be on this node.
Result<std::vector<ProcessPlace>> places_for(const event::StartProcesses& asked) {
  auto given = places_of(asked.places);
  if (!given) return Error{fmt::format("'{}' is no place: write NODE or NODE:CORE", given.error().text)};
  std::vector<ProcessPlace>& places = given.value();
  if (places.empty()) places.resize(static_cast<std::size_t>(asked.count));
  if (static_cast<std::int64_t>(places.size()) != asked.count) {
    return Error{fmt::format("{} places for {} processes: give one for each, or none", places.size(), asked.count)};
  }
  const std::string here = host_name();
  for (const ProcessPlace& place : places) {
    if (place.node.empty() || place.node == "localhost" || place.node == here) continue;
    return Error{fmt::format("hocketd of {} starts processes only on its own node, not on '{}'", here, place.node)};
  }
  return given;
}

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return fmt::format("killed by signal {} (SIG{})", number, name == nullptr ? "?" : name);
}

// Returns the reason for the log and the application. A launcher returns the exit code of its process, or the number
// of the signal that killed it, so the two cannot be told apart.
std::string reason_of(pid_t pid, int status, bool by_launcher) {
  if (WIFSIGNALED(status)) {
    return fmt::format("{} {} was {}", by_launcher ? "a joining process's launcher" : "joining process", pid,
                       signal_text(WTERMSIG(status)));
  }
  const int code = WEXITSTATUS(status);
  if (by_launcher && code > 1 && sigabbrev_np(code) != nullptr) {
    return fmt::format("a joining process was {}, or ended with exit code {}: its launcher {} reports no more",
                       signal_text(code), code, pid);
  }
  return fmt::format("joining process {} ended with exit code {} before it had joined", pid, code);
}

// Returns the launch of processes like the one that asked. Reads its files.
Result<LaunchPlan> launch_for(const event::StartProcesses& asked, const std::vector<ProcessPlace>& places) {
  auto found = image_of(static_cast<pid_t>(asked.pid));
  if (!found) return Error{found.error()};
  LaunchPlan launch{std::move(found).value(), {}, false};
  ProcessImage& image = launch.image;
  // The requesting process may have joined itself, and then has the variable of its own join.
  std::erase_if(image.environment, [](const std::string& v) { return v.starts_with("HOCKET_JOIN="); });
  image.environment = without_launcher(std::move(image.environment));
  image.environment.push_back(fmt::format("HOCKET_JOIN={} {}", asked.request.value, asked.port));
  const std::string launcher = launcher_of(static_cast<pid_t>(asked.pid));
  launch.by_launcher = !launcher.empty();
  if (launch.by_launcher) {
    if (!image.arguments.empty()) image.arguments.front() = std::exchange(image.program, launcher);
    image.arguments.insert(image.arguments.begin(), {launcher, "-n", "1"});
  }
  for (const ProcessPlace& place : places) launch.cores.push_back(place.core);
  return launch;
}

}  // namespace

Status ProcessStarter::start(const event::StartProcesses& asked) {
  auto places = places_for(asked);
  if (!places) return Error{"processes cannot be started: " + places.error().text};
  // An application has one join at a time. Children of earlier joins no longer matter, and request numbers may
  // repeat.
  for (Child& child : children_) {
    if (child.app == asked.app) child.app = {};
  }
  for (auto& [number, earlier] : starting_) {
    if (earlier.app == asked.app) earlier.app = {};
  }
  const auto number = launches_.begin([asked, all = std::move(places).value()] { return launch_for(asked, all); });
  if (!number) return Error{"processes cannot be started: " + number.error().text};
  starting_[number.value()] = {asked.app, asked.request, asked.count};
  return success();
}

void ProcessStarter::stop(AppId app, RequestId request) {
  for (const Child& child : children_) {
    // A child leads its own process group since setsid, so a launcher ends with its process.
    if (child.app == app && child.request == request) kill(-child.pid, SIGKILL);
  }
  std::erase_if(starting_, [&](const auto& entry) {
    const bool is_it = entry.second.app == app && entry.second.request == request;
    if (is_it) launches_.drop(entry.first);
    return is_it;
  });
}

std::vector<event::ProcessFailed> ProcessStarter::collect() {
  std::vector<event::ProcessFailed> failed;
  for (const Launches::LaunchOutcome& outcome : launches_.collect()) {
    const auto found = starting_.find(outcome.number);
    const AskedProcesses asked = found->second;
    starting_.erase(found);
    for (const pid_t pid : outcome.pids) children_.push_back({pid, asked.app, asked.request, outcome.by_launcher});
    if (outcome.error.empty()) continue;
    const std::string what = outcome.failed == 0
                                 ? "processes cannot be started"
                                 : fmt::format("process {} of {} cannot be started", outcome.failed, asked.count);
    failed.push_back({asked.request, asked.app, what + ": " + outcome.error});
  }
  std::ranges::move(reap(), std::back_inserter(failed));
  return failed;
}

std::vector<event::ProcessFailed> ProcessStarter::reap() {
  launches_.reap();
  std::vector<event::ProcessFailed> ended;
  std::erase_if(children_, [&](const Child& child) {
    int status = 0;
    if (waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
    ended.push_back({child.request, child.app, reason_of(child.pid, status, child.by_launcher)});
    return true;
  });
  return ended;
}

}  // namespace hocket::daemon
