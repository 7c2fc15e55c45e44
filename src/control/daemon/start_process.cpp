#include "daemon/start_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"

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

// Has the kernel end the program in order when this daemon ends, however that happens. It may have ended already.
void end_with(pid_t daemon) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != daemon) _exit(127);
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
  if (image.ends_with_daemon) end_with(image.daemon);
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

}  // namespace

Result<StartedProcess> begin_process(const ProcessImage& image, std::int64_t core) {
  std::vector<std::string> words = image.arguments;
  std::vector<std::string> variables = image.environment;
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> environment = pointers_to(variables);
  const Fd null{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Error{"cannot make a pipe: " + error_text(errno)};
  Fd read_end{ends[0]};
  const Fd write_end{ends[1]};
  const pid_t pid = fork();
  if (pid == 0) become(image, core, arguments.data(), environment.data(), null.get(), write_end.get());
  if (pid < 0) return Error{"cannot fork: " + error_text(errno)};
  return StartedProcess{pid, std::move(read_end)};
}

Status await_exec(const StartedProcess& started, const ProcessImage& image, Time until) {
  pollfd outcome{started.outcome.get(), POLLIN, 0};
  int ready = 0;
  do {
    const Duration left = std::max(until - node_now(), Duration::zero());
    ready = poll(&outcome, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0)
    return Error{fmt::format("{}: it does not run yet: the file system of the program, or of {}, does not answer",
                             image.program, image.directory)};
  Failure failure;
  ssize_t count = 0;
  do {
    count = read(started.outcome.get(), &failure, sizeof failure);  // end of file: the program runs
  } while (count < 0 && errno == EINTR);
  if (count != sizeof failure) return success();
  const std::string& what = failure.in_directory ? image.directory : image.program;
  return Error{fmt::format("{}: cannot be {}: {}", what, failure.in_directory ? "entered" : "started",
                           error_text(failure.error))};
}

}  // namespace hocket::daemon
