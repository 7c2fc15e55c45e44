#include "daemon/process_starter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/host_name.hpp"
#include "base/places.hpp"
#include "daemon/process_image.hpp"

namespace hocket::daemon {
namespace {

// The message of a child that could not execute the program. Success sends nothing: exec closes the pipe.
struct Failure {
  bool in_directory = false;  // true: chdir failed; false: execve failed
  int error = 0;
};

// The child closes all descriptors above this one.
constexpr int failure_fd = 3;

// Returns the null-terminated array that execve takes. It points into `texts`, which must stay alive.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// ---- in the child, after fork: only what is async-signal-safe ---------------------------------------------------

// Closes all descriptors from this number on, so that the program inherits nothing of the daemon.
void close_others(int from) {
  if (close_range(static_cast<unsigned>(from), ~0U, 0) == 0) return;
  rlimit files{};  // kernels before 5.9
  getrlimit(RLIMIT_NOFILE, &files);
  for (int fd = from; static_cast<rlim_t>(fd) < files.rlim_cur; ++fd) close(fd);
}

// Binds the child to a core. The application itself reports a core that is not available, when the process has
// joined.
void run_on(std::int64_t core) {
  if (core < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Takes over signal mask, SIGPIPE handling and umask, and starts a session that no terminal of the daemon can end.
void be_like(const ProcessImage& image) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // the daemon ignores it, and a program would inherit that
  umask(image.umask);
}

// Reports errno through the pipe and ends the child without running the daemon's exit handlers.
[[noreturn]] void fail(bool in_directory) {
  const Failure failure{in_directory, errno};
  (void)!write(failure_fd, &failure, sizeof failure);
  _exit(127);
}

// Turns the child into the program. The arrays were built before fork, because malloc is not async-signal-safe.
[[noreturn]] void become(const ProcessImage& image, std::int64_t core, char* const* arguments, char* const* environment,
                         int null_fd, int pipe_fd) {
  be_like(image);
  run_on(core);
  dup2(null_fd, STDIN_FILENO);
  dup2(image.out.get(), STDOUT_FILENO);
  dup2(image.err.get(), STDERR_FILENO);
  // O_CLOEXEC closes the pipe at exec, and that is how the daemon learns of success.
  if (pipe_fd != failure_fd) dup3(pipe_fd, failure_fd, O_CLOEXEC);
  close_others(failure_fd + 1);
  for (std::size_t i = 0; i < image.limits.size(); ++i) {
    // This fails if it would raise a limit beyond what is allowed; the lower limit then stays.
    setrlimit(static_cast<__rlimit_resource>(i), &image.limits[i]);
  }
  if (chdir(image.directory.c_str()) != 0) fail(true);
  execve(image.program.c_str(), arguments, environment);
  fail(false);
}

// ---- in the daemon -----------------------------------------------------------------------------------------------

// Starts one process and waits until it runs the program. The pointers need to be valid during the call only.
Result<pid_t> start_one(const ProcessImage& image, std::int64_t core, char* const* arguments, char* const* environment,
                        const bus::Fd& null) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Error{"cannot make a pipe: " + bus::error_text(errno)};
  const bus::Fd read_end{ends[0]};
  bus::Fd write_end{ends[1]};
  const pid_t pid = fork();
  if (pid == 0) become(image, core, arguments, environment, null.get(), write_end.get());
  if (pid < 0) return Error{"cannot fork: " + bus::error_text(errno)};
  write_end = bus::Fd{};
  Failure failure;
  ssize_t count = 0;
  do {
    count = read(read_end.get(), &failure, sizeof failure);  // end of file: the program runs
  } while (count < 0 && errno == EINTR);
  if (count != sizeof failure) return pid;
  waitpid(pid, nullptr, 0);
  const std::string& what = failure.in_directory ? image.directory : image.program;
  return Error{fmt::format("{}: cannot be {}: {}", what, failure.in_directory ? "entered" : "started",
                           bus::error_text(failure.error))};
}

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

}  // namespace

Status ProcessStarter::start(const event::StartProcesses& asked) {
  const auto places = places_for(asked);
  if (!places) return Error{"processes cannot be started: " + places.error().text};
  auto found = image_of(static_cast<pid_t>(asked.pid));
  if (!found) return Error{"processes cannot be started: " + found.error().text};
  ProcessImage& image = found.value();
  // The requesting process may have joined itself, and then has the variable of its own join.
  std::erase_if(image.environment, [](const std::string& v) { return v.starts_with("HOCKET_JOIN="); });
  image.environment = without_launcher(std::move(image.environment));
  image.environment.push_back(fmt::format("HOCKET_JOIN={} {}", asked.request.value, asked.port));
  const std::string launcher = launcher_of(static_cast<pid_t>(asked.pid));
  if (!launcher.empty()) {
    if (!image.arguments.empty()) image.arguments.front() = std::exchange(image.program, launcher);
    image.arguments.insert(image.arguments.begin(), {launcher, "-n", "1"});
  }
  const std::vector<char*> arguments = pointers_to(image.arguments);
  const std::vector<char*> environment = pointers_to(image.environment);
  // An application has one join at a time. Children of earlier joins no longer matter, and request numbers may
  // repeat.
  for (Child& child : children_) {
    if (child.app == asked.app) child.app = {};
  }
  const bus::Fd null{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  for (std::int64_t i = 0; i < asked.count; ++i) {
    const auto started =
        start_one(image, places.value()[static_cast<std::size_t>(i)].core, arguments.data(), environment.data(), null);
    if (!started) {
      // All or none: end those that run already, and collect them here so that `reap` reports nothing.
      stop(asked.app, asked.request);
      std::erase_if(children_, [&](const Child& c) {
        return c.app == asked.app && c.request == asked.request && waitpid(c.pid, nullptr, 0) == c.pid;
      });
      return Error{fmt::format("process {} of {} cannot be started: {}", i + 1, asked.count, started.error().text)};
    }
    children_.push_back({started.value(), asked.app, asked.request, !launcher.empty()});
  }
  return success();
}

void ProcessStarter::stop(AppId app, RequestId request) {
  for (const Child& child : children_) {
    // A child leads its own process group since setsid, so a launcher ends with its process.
    if (child.app == app && child.request == request) kill(-child.pid, SIGKILL);
  }
}

std::vector<event::ProcessFailed> ProcessStarter::reap() {
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
