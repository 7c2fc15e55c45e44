#include "bus/slurm_step.hpp"

#include <algorithm>
#include <cctype>

#include "base/whole_file.hpp"

namespace hocket::bus {
namespace {

constexpr std::size_t most_bytes = 64 << 10;  // of the file; a line for each hierarchy
constexpr std::size_t longest = 64;           // job and step

// Returns the part of the path that follows `mark`, up to the next slash; "" if there is none.
std::string_view part_behind(std::string_view path, std::string_view mark) {
  const std::size_t at = path.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = path.substr(at + mark.size());
  return rest.substr(0, rest.find('/'));
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char one) { return std::isdigit(one); });
}

// Returns the group below which slurmd makes those of jobs, if the line of the file names one, else "". In version 1
// that is /slurm/uid_USER. A user may own groups of version 2 and of systemd's hierarchy, but none next to
// slurmstepd.scope.
std::string_view jobs_of(std::string_view line, uid_t user) {
  const std::size_t second = line.find(':', line.find(':') + 1);
  if (second == std::string_view::npos) return {};
  const std::string_view path = line.substr(second + 1);
  if (line.starts_with("0::")) {
    if (!path.starts_with("/system.slice/")) return {};
    const std::string_view scope = part_behind(path, "/system.slice/");
    return scope.ends_with("slurmstepd.scope") ? path : std::string_view{};
  }
  const std::size_t at = path.find("/uid_" + std::to_string(user) + "/");
  if (line.find(":name=") < second || at == std::string_view::npos || at == 0) return {};
  const std::string_view parent = path.substr(0, at);
  return part_behind(parent.substr(parent.rfind('/')), "/").starts_with("slurm") ? path.substr(at) : std::string_view{};
}

}  // namespace

std::string slurm_step_in(std::string_view cgroups, uid_t user) {
  while (!cgroups.empty()) {
    const std::size_t end = std::min(cgroups.find('\n'), cgroups.size());
    const std::string_view path = jobs_of(cgroups.substr(0, end), user);
    cgroups.remove_prefix(std::min(end + 1, cgroups.size()));
    const std::string_view job = part_behind(path, "/job_");
    const std::string_view step = part_behind(path, "/step_");
    if (is_number(job) && !step.empty() && job.size() + step.size() < longest)
      return std::string{job} + "." + std::string{step};
  }
  return {};
}

std::string slurm_step_of(pid_t process, uid_t user) {
  if (process <= 0) return {};
  const std::string path = "/proc/" + std::to_string(process) + "/cgroup";
  return slurm_step_in(whole_file(path.c_str(), most_bytes), user);
}

std::string_view slurm_job_of(std::string_view step) { return step.substr(0, step.find('.')); }

}  // namespace hocket::bus
