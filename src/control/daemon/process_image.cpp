#include "daemon/process_image.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

namespace hocket::daemon {
namespace {

// Prefixes of the variables that Hydra (MPICH, Intel MPI), PRRTE and Open MPI 4 set for each of their processes, as
// `mpiexec -n 1 env` shows them. OMPI_MCA_… and PRTE_MCA_… may be the user's and stay.
constexpr std::array<std::string_view, 17> of_launchers{"PMI_",
                                                        "PMI2_",
                                                        "PMIX_",
                                                        "HYDI_",
                                                        "MPI_LOCALRANKID=",
                                                        "MPI_LOCALNRANKS=",
                                                        "OMPI_COMM_WORLD_",
                                                        "OMPI_UNIVERSE_",
                                                        "OMPI_WORLD_",
                                                        "OMPI_ARGV=",
                                                        "OMPI_COMMAND=",
                                                        "OMPI_NUM_APP_CTX=",
                                                        "OMPI_APP_CTX_",
                                                        "OMPI_FIRST_RANKS=",
                                                        "OMPI_FILE_LOCATION=",
                                                        "OMPI_MCA_ess",
                                                        "PRTE_LAUNCHED="};

std::string proc(pid_t pid, const char* what) { return fmt::format("/proc/{}/{}", pid, what); }

// Returns the bytes of a file, or "" if it cannot be read; callers check what they need.
std::string contents(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// Returns the target of a symbolic link, or "" if it cannot be read.
std::string link_at(const std::string& path) {
  std::array<char, 4096> target{};
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  return length < 0 ? std::string{} : std::string{target.data(), static_cast<std::size_t>(length)};
}

// Splits a text at its zero bytes, which is how /proc separates arguments and variables.
std::vector<std::string> texts_in(const std::string& bytes) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', at), bytes.size());
    texts.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

// Returns the process's umask, or 022 if the kernel does not show it.
mode_t umask_of(pid_t pid) {
  constexpr std::string_view key = "Umask:";
  const std::string status = contents(proc(pid, "status"));
  const std::size_t at = status.find(key);
  if (at == std::string::npos) return 022;
  return static_cast<mode_t>(std::strtoul(status.c_str() + at + key.size(), nullptr, 8));
}

// Returns a descriptor for the output of another process. The preferred one is a duplicate of its own descriptor: it
// shares the file offset, so a file is appended to and not overwritten. The next choice opens the same path anew, and
// the last one is /dev/null.
bus::Fd output_of(pid_t pid, const bus::Fd& process, int number) {
  bus::Fd same{static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), number, 0U))};
  if (same) return same;
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, number);
  bus::Fd opened{open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC)};
  if (opened) return opened;
  return bus::Fd{open("/dev/null", O_WRONLY | O_CLOEXEC)};
}

}  // namespace

Result<ProcessImage> image_of(pid_t pid) {
  if (pid <= 0) return Error{"the requesting process is in another PID namespace, which this daemon cannot see"};
  const Error ended{fmt::format("the requesting process {} has ended", pid)};
  // Holding this descriptor detects a reuse of the process id while the image is read.
  const bus::Fd process{static_cast<int>(syscall(SYS_pidfd_open, pid, 0U))};
  if (!process) {
    return errno == ESRCH ? ended : Error{"cannot inspect the requesting process: " + bus::error_text(errno)};
  }
  struct stat owner {};
  if (stat(proc(pid, "").c_str(), &owner) != 0) return ended;
  if (owner.st_uid != geteuid()) {
    return Error{fmt::format(
        "the requesting process {} belongs to user {}, hocketd to user {}: it starts processes only for its "
        "own user",
        pid, owner.st_uid, geteuid())};
  }
  ProcessImage image;
  image.program = link_at(proc(pid, "exe"));
  image.directory = link_at(proc(pid, "cwd"));
  image.arguments = texts_in(contents(proc(pid, "cmdline")));
  image.environment = texts_in(contents(proc(pid, "environ")));
  image.umask = umask_of(pid);
  for (std::size_t i = 0; i < image.limits.size(); ++i) {
    if (prlimit(pid, static_cast<__rlimit_resource>(i), nullptr, &image.limits[i]) != 0) return ended;
  }
  image.out = output_of(pid, process, STDOUT_FILENO);
  image.err = output_of(pid, process, STDERR_FILENO);
  // A replaced executable would start another program under the same name.
  struct stat then {};
  struct stat now {};
  const bool known = stat(proc(pid, "exe").c_str(), &then) == 0;
  const bool same = stat(image.program.c_str(), &now) == 0 && then.st_dev == now.st_dev && then.st_ino == now.st_ino;
  if (known && !same) {
    constexpr std::string_view mark = " (deleted)";
    if (image.program.ends_with(mark)) image.program.resize(image.program.size() - mark.size());
    return Error{image.program + ": it was removed or replaced since the requesting process started"};
  }
  const bool whole = !image.program.empty() && !image.directory.empty() && !image.arguments.empty();
  // Signal 0 checks that the process still exists, so that everything above was read from it.
  if (!whole || syscall(SYS_pidfd_send_signal, process.get(), 0, nullptr, 0U) != 0) return ended;
  return image;
}

std::vector<std::string> without_launcher(std::vector<std::string> environment) {
  std::erase_if(environment, [](const std::string& variable) {
    return std::ranges::any_of(of_launchers, [&](std::string_view prefix) { return variable.starts_with(prefix); });
  });
  return environment;
}

// The parent is the fourth field of /proc/PID/stat. The search ends at init, or after eight ancestors.
std::string launcher_of(pid_t pid) {
  constexpr int most_ancestors = 8;
  for (int i = 0; i < most_ancestors && pid > 1; ++i) {
    const std::string stat = contents(proc(pid, "stat"));
    // The name in parentheses may contain anything, so the search is for the last one.
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || name_end + 4 >= stat.size()) return {};
    pid = static_cast<pid_t>(std::strtol(stat.c_str() + name_end + 4, nullptr, 10));  // ") S PPID"
    const std::string program = link_at(proc(pid, "exe"));
    const std::size_t slash = program.rfind('/');
    // Only Hydra needs its launcher; the proxy's folder has the mpiexec of the same installation.
    if (slash == std::string::npos || program.substr(slash + 1) != "hydra_pmi_proxy") continue;
    for (const char* name : {"mpiexec.hydra", "mpiexec"}) {
      std::string launcher = program.substr(0, slash + 1) + name;
      if (access(launcher.c_str(), X_OK) == 0) return launcher;
    }
  }
  return {};
}

}  // namespace hocket::daemon
