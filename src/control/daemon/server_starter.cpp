#include "daemon/server_starter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/server_files.hpp"
#include "base/whole_file.hpp"
#include "bus/private_directory.hpp"
#include "file_system/ask_target.hpp"

namespace hocket::daemon {
namespace {

constexpr const char* program_name = "hocket-server";
constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_words = 500;  // of a server that did not start

// The name is part of paths.
bool is_name(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= longest_name && name.front() != '.' &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

// Returns the path of hocket-server, which is installed beside hocketd.
Result<std::string> program() {
  std::error_code failed;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::string path = (own.parent_path() / program_name).string();
  if (!failed && access(path.c_str(), X_OK) == 0) return path;
  return Error{"there is no " + (failed ? std::string{program_name} : path) + ": install it beside hocketd"};
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> environment_with(const std::string& target_names) {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  // The first value counts: what this daemon was started with goes before its configuration.
  if (!target_names.empty()) variables.push_back(std::string{file_system::target_names_variable} + "=" + target_names);
  return variables;
}

std::string log_of(const std::string& directory, const std::string& server) {
  return server_files::directory(directory) + "/" + server + ".log";
}

// Returns the last line in the log of a server.
std::string last_words(const std::string& directory, const std::string& server) {
  constexpr std::size_t enough = 64 << 10;
  const auto lines = lines_of(whole_file(log_of(directory, server).c_str(), enough));
  constexpr std::string_view before = "hocket-server: ";
  if (lines.empty()) return "it said nothing";
  const std::string& last = lines.back();
  return (last.starts_with(before) ? last.substr(before.size()) : last).substr(0, longest_words);
}

// Returns the launch of a server, whose output goes to its log.
Result<LaunchPlan> launch_for(const event::StartServer& asked, const std::string& directory,
                              const std::string& target_names) {
  const auto path = program();
  if (!path) return path.error();
  if (const Status ready = bus::make_runtime_directory(server_files::directory(directory), "--dir"); !ready)
    return ready.error();
  ProcessImage image;
  image.program = path.value();
  image.arguments = {path.value(), "--name", asked.server, "--runtime-dir", directory};
  for (std::string& argument : lines_of(asked.arguments)) image.arguments.push_back(std::move(argument));
  image.environment = environment_with(target_names);
  image.directory = "/";
  image.umask = 077;
  for (std::size_t i = 0; i < image.limits.size(); ++i) getrlimit(static_cast<__rlimit_resource>(i), &image.limits[i]);
  const std::string log = log_of(directory, asked.server);
  image.out = Fd{open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!image.out) return Error{"cannot write " + log + ": " + error_text(errno)};
  image.err = Fd{dup(image.out.get())};
  image.ends_with_daemon = true;
  image.daemon = getpid();
  return LaunchPlan{std::move(image), {-1}, false};
}

}  // namespace

Status ServerStarter::start(const event::StartServer& asked) {
  if (!is_name(asked.server))
    return Error{"'" + asked.server.substr(0, longest_name) +
                 "' is no name of a server: use letters, digits, '.', '_' "
                 "and '-', at most 64, and begin with no '.'"};
  if (servers_.size() + starting_.size() >= most)
    return Error{fmt::format("{} servers were started here already: stop some", most)};
  const auto number = launches_.begin([asked, directory = directory_, target_names = target_names_] {
    return launch_for(asked, directory, target_names);
  });
  if (!number) return number.error();
  starting_[number.value()] = {0, asked.server, asked.node, asked.token, false};
  return success();
}

std::vector<event::Body> ServerStarter::collect() {
  std::vector<event::Body> told = std::exchange(stopped_, {});
  for (const Launches::LaunchOutcome& outcome : launches_.collect()) {
    const auto found = starting_.find(outcome.number);
    StartedServer one = std::move(found->second);
    starting_.erase(found);
    if (!outcome.error.empty()) {
      told.emplace_back(event::ServerFailed{one.server, one.node, outcome.error, one.token});
      continue;
    }
    one.pid = outcome.pids.front();
    told.emplace_back(event::ServerStarted{one.server, one.node, one.pid, one.token});
    servers_.push_back(std::move(one));
  }
  reap();  // some may have ended before their outcome was known
  std::erase_if(failing_, [&](link::Later<event::ServerFailed>& one) {
    auto failed = one.take();
    if (failed && *failed) told.emplace_back(std::move(*failed).value());
    return failed.has_value();
  });
  return told;
}

// The process may join before its launch is known to have succeeded.
void ServerStarter::joined(const std::string& server, std::int64_t pid) {
  for (StartedServer& one : servers_)
    if (one.server == server && one.pid == pid) one.has_joined = true;
  for (auto& [number, one] : starting_)
    if (one.server == server && launches_.has(number, pid)) one.has_joined = true;
}

bool ServerStarter::stop(const std::string& server) {
  bool any = false;
  for (const StartedServer& one : servers_) any = (one.server == server && kill(one.pid, SIGTERM) == 0) || any;
  std::erase_if(starting_, [&](const auto& entry) {
    if (entry.second.server != server) return false;
    launches_.drop(entry.first);
    stopped_.emplace_back(event::ServerFailed{server, entry.second.node, "it was stopped", entry.second.token});
    launches_.waker()();
    return any = true;
  });
  return any;
}

void ServerStarter::reap() {
  launches_.reap();
  std::erase_if(servers_, [&](const StartedServer& one) {
    if (waitpid(one.pid, nullptr, WNOHANG) != one.pid) return false;
    if (!one.has_joined) {
      failing_.push_back(link::Later<event::ServerFailed>::begin(
          [one, directory = directory_]() -> Result<event::ServerFailed> {
            return event::ServerFailed{one.server, {}, last_words(directory, one.server), one.token};
          },
          launches_.waker()));
    }
    return true;
  });
}

}  // namespace hocket::daemon
