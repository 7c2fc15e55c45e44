#include "daemon/relaying.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/clock.hpp"
#include "base/host_name.hpp"
#include "bus/local_socket.hpp"
#include "daemon/agent_work.hpp"
#include "daemon/daemon_end.hpp"
#include "daemon/introduction.hpp"
#include "daemon/users.hpp"

namespace hocket::daemon {
namespace {

constexpr Duration longest_sleep = std::chrono::seconds{60};
// Time for the first link, after which the agent listens without one.
constexpr Duration first_link_limit = std::chrono::seconds{3};

}  // namespace

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream words{text};
  for (std::string word; words >> word;) found.push_back(word);
  return found;
}

Status relay(const config::DaemonSettings& settings, const std::string& directory, std::unique_ptr<link::Tls> tls,
             const std::function<void(const std::string& socket)>& listening) {
  const std::string socket = bus::socket_in(directory);
  const auto users = users_of(settings);
  if (!users) return users.error();
  const auto started = link::Relay::start(
      socket, words_of(settings.leaders), std::move(tls), introduction(settings, host_name()),
      [](const std::string& text) { spdlog::warn("{}", text); }, users.value());
  if (!started) return started.error();
  link::Relay& agent = *started.value();
  const auto watch = [&agent](int fd, DaemonEnd::Call ready) { agent.watch(fd, std::move(ready)); };
  AgentWork work{directory, settings.address, settings.target_names,
                 [&agent](const event::Body& body) { return agent.report(body); }};
  if (settings.users != "all") {
    agent.serve_with(work);
    work.watch(watch);
  }
  DaemonEnd ending;
  const Status caught = ending.catch_signals(
      watch, [&agent] { return agent.members(); }, [&work] { work.reap(); });
  if (!caught) return caught.error();
  spdlog::info("hocketd {} (pid {}) is the agent of {}; leaders: {}", HOCKET_VERSION, getpid(), host_name(),
               settings.leaders);
  const Time latest = node_now() + first_link_limit;
  while (!ending.is_over() && !agent.is_linked() && !agent.has_failed_once() && node_now() < latest)
    agent.run(latest - node_now());
  if (ending.is_over()) return success();
  if (const Status ready = agent.listen(); !ready) return ready;
  ending.watch_socket(socket, watch, [&agent] { return agent.is_reachable(); });
  listening(socket);
  Time with_members = node_now();
  const Duration idle = from_s(settings.exit_when_idle_s);
  while (!ending.is_over()) {
    agent.run(idle > Duration::zero() ? std::min(idle, longest_sleep) : longest_sleep);
    if (agent.members() > 0) with_members = node_now();
    if (idle > Duration::zero() && node_now() - with_members >= idle) ending.end();
  }
  return success();
}

}  // namespace hocket::daemon
