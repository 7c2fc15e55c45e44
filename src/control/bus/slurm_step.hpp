// The Slurm step of a process, as the kernel of its node says: slurmd puts the processes of each step into a control
// group, which no user can leave or make. A process cannot name another step that way, as it can by its environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace hocket::bus {

// Returns job and step, "1234.0" or "1234.batch", by the content of /proc/PID/cgroup of a process of this user; "" if
// it is in none, or slurmd tracks processes without control groups (proctrack/linuxproc, proctrack/pgid). Pure.
std::string slurm_step_in(std::string_view cgroups, uid_t user);

// Returns the same of a process of this node that runs. It reads one file of /proc.
std::string slurm_step_of(pid_t process, uid_t user);

// Returns the job of such a step: "1234"; "" of "".
std::string_view slurm_job_of(std::string_view step);

}  // namespace hocket::bus
