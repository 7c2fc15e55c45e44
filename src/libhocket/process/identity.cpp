#include "process/identity.hpp"

#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>

#include "base/clock.hpp"
#include "base/host_name.hpp"
#include "event/applicant.hpp"
#include "mpi_shim/calls.hpp"
#include "session/target.hpp"

namespace hocket::runtime {
namespace {

Identity& object() {
  static Identity& one = *[] {
    auto* const made = new Identity;
    const auto complain = [made](std::string_view line) { made->wrong_settings += std::string(line) + "\n"; };
    made->settings = read_settings(std::getenv, complain);
    read_target_names();
    return made;
  }();
  return one;
}

std::string program_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "";
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

const Identity& identity() { return object(); }

const Identity& identify() {
  Identity& own = object();
  own.rank = mpi::rank_in(mpi::world());
  own.size = mpi::size_of(mpi::world());
  own.spawned = mpi::is_spawned();
  own.started = node_now();
  return own;
}

event::Hello hello() {
  const Identity& own = identity();
  const MemberSettings& settings = own.settings;
  event::Hello hello;
  hello.program = program_path();
  hello.job = settings.job.empty() ? "pid-" + host_name() + "-" + std::to_string(getpid()) : settings.job;
  hello.application = settings.name.empty() ? base_name(hello.program) : settings.name;
  hello.mpi = mpi::name;
  hello.version = HOCKET_VERSION;
  hello.pid = getpid();
  hello.processes = own.rank == 0 ? own.size : 0;
  hello.delegations = true;
  return hello;
}

std::string applicant_at(const event::StartIo& asked) {
  if (!identity().coordinates() || asked.target.empty()) return {};
  const event::Hello own = hello();
  return event::text_of(event::Applicant{own.job, own.application, asked.target, asked.parts});
}

std::string application_id() {
  const event::Hello own = hello();
  const Identity& process = identity();
  if (!process.settings.job.empty()) return own.application + "@" + own.job + ":" + base_name(own.program);
  return own.application + "@" + host_name() + ":" + std::to_string(own.pid) + ":" +
         std::to_string(to_ns(process.started));
}

}  // namespace hocket::runtime
