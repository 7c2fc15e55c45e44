#include "daemon/agent_work.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/server_files.hpp"
#include "daemon/for_servers.hpp"

namespace hocket::daemon {
namespace {

constexpr std::size_t most_untold = 1024;  // ends of servers while there is no leader
constexpr std::size_t instance_bytes = 64;

}  // namespace

AgentWork::AgentWork(const std::string& directory, std::string address, const std::string& target_names, Report report)
    : directory_(directory),
      address_(std::move(address)),
      report_(std::move(report)),
      servers_(directory, target_names),
      programs_({}) {}

void AgentWork::watch(const Watch& watch) {
  watch(processes_.descriptor(), [this] {
    processes_.collect();
    tell_ended();
  });
  watch(programs_.descriptor(), [this] { tell_fingerprints(); });
  watch(servers_.descriptor(), [this] { tell_started(); });
  watch(starter_.descriptor(), [this] {
    for (const event::ProcessFailed& failed : starter_.collect()) report_(failed);
  });
}

void AgentWork::reap() {
  servers_.reap();
  for (const event::ProcessFailed& ended : starter_.reap()) report_(ended);
}

void AgentWork::linked(const std::string& address) {
  const Status left = leave_address(directory_, address_.empty() ? address : address_);
  if (!left) spdlog::warn("I/O servers that start here are not reached by other nodes: {}", left.error().text);
  for (event::ServerEnded& ended : std::exchange(untold_, {})) tell_end(std::move(ended));
}

// Servers live on, and come back with the next link.
void AgentWork::unlinked() {}

void AgentWork::carry_out(std::uint64_t member, const event::Body& order) {
  if (const auto* server = std::get_if<event::Server>(&order)) {
    watch_server(MemberId{member}, *server);
  } else if (const auto* hung = std::get_if<event::HungIoServer>(&order)) {
    const Status killed = processes_.kill(hung->server, hung->pid);
    if (!killed) spdlog::error("the I/O server {} hangs: {}; end it", hung->server, killed.error().text);
  } else if (const auto* start = std::get_if<event::StartServer>(&order)) {
    start_server(*start);
  } else if (const auto* stop = std::get_if<event::StopServer>(&order)) {
    stop_server(*stop);
  } else if (const auto* asked = std::get_if<event::AskFingerprint>(&order)) {
    programs_.fingerprint(asked->program, asked->app);
  } else if (const auto* processes = std::get_if<event::StartProcesses>(&order)) {
    if (const Status started = starter_.start(*processes); !started)
      report_(event::ProcessFailed{processes->request, processes->app, started.error().text});
  } else if (const auto* unneeded = std::get_if<event::StopProcesses>(&order)) {
    starter_.stop(unneeded->app, unneeded->request);
  }
}

void AgentWork::left(std::uint64_t member, bool closed) {
  processes_.left(MemberId{member}, closed);
  tell_ended();
}

// ---- I/O servers ---------------------------------------------------------------------------------------------------

void AgentWork::watch_server(MemberId member, const event::Server& server) {
  if (has_ended(server)) return tell_end({server.server, server.pid, server.instance});
  servers_.joined(server.server, server.pid);
  const Status watched = processes_.watch(member, server);
  if (!watched && server.heartbeat > Duration::zero())
    spdlog::warn("the I/O server {} cannot be killed if it hangs: {}", server.server, watched.error().text);
}

// An agent that has begun anew does not know the process. Its number may be that of another one meanwhile, but the lock
// names the run of the server that holds it (base/server_files.hpp).
bool AgentWork::has_ended(const event::Server& server) const {
  const std::string path = server_files::lock(directory_, server.server);
  const Fd lock{open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!lock || server.instance.empty()) return false;  // nothing is known
  if (flock(lock.get(), LOCK_SH | LOCK_NB) == 0) return true;
  std::array<char, instance_bytes> text{};
  const ssize_t bytes = pread(lock.get(), text.data(), text.size(), 0);
  if (bytes < static_cast<ssize_t>(server.instance.size())) return false;  // the file says nothing
  return std::string_view{text.data(), static_cast<std::size_t>(bytes)} != server.instance;
}

void AgentWork::start_server(const event::StartServer& asked) {
  const Status begun = servers_.start(asked);
  if (!begun) report_(event::ServerFailed{asked.server, asked.node, begun.error().text, asked.token});
}

void AgentWork::tell_started() {
  for (const event::Body& told : servers_.collect()) {
    if (const auto* started = std::get_if<event::ServerStarted>(&told)) {
      spdlog::info("started the I/O server {} (process {}) for the leader", started->server, started->pid);
    } else if (const auto* failed = std::get_if<event::ServerFailed>(&told)) {
      spdlog::warn("the I/O server {} did not start: {}", failed->server, failed->reason);
    }
    report_(told);
  }
}

void AgentWork::stop_server(const event::StopServer& asked) {
  if (servers_.stop(asked.server)) return;
  const Status ended = processes_.end(asked.server, asked.instance);
  if (!ended) spdlog::warn("the I/O server {} cannot be stopped: {}", asked.server, ended.error().text);
}

void AgentWork::tell_ended() {
  for (event::ServerEnded& ended : processes_.take_ended()) tell_end(std::move(ended));
}

void AgentWork::tell_end(event::ServerEnded ended) {
  if (report_(ended)) return;
  untold_.push_back(std::move(ended));
  if (untold_.size() > most_untold) untold_.pop_front();
}

void AgentWork::tell_fingerprints() {
  for (ProfileWorker::ProfileAnswer& answer : programs_.take())
    report_(event::ProgramFingerprint{answer.app, std::move(answer.program), std::move(answer.sha256)});
}

}  // namespace hocket::daemon
