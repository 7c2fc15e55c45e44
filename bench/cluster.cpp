// Measures the leader of a cluster, through real processes and TLS on loopback:
//
// - START_IO → GRANT_IO through an agent, beside a bare relay of the same bytes with the same hops;
// - grants for each CPU second of the leader's deciding thread, from 64 agents, beside the same from Unix sockets;
// - many agents and applications: the leader's memory, the cost of beats, and grants at a fixed pace.
//
// --agents=N: the last one has so many agents in place of 1,000, with 10 applications on each. Names of cases select
// them: relay, rate, many.
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>

#include "cluster_load.hpp"
#include "daemon_process.hpp"
#include "link/key.hpp"
#include "link/tcp.hpp"

namespace {

using namespace hocket;
using namespace std::chrono_literals;
using bench::die;
using bench::good;

// Samples of each kind, and the bounds.
constexpr std::size_t samples = 5'000;
constexpr double relay_bound = 1.5;        // ratio of the medians
constexpr double grants_bound = 200'000;   // for each CPU second
constexpr double beats_bound_percent = 5;  // of a core
constexpr double paced_bound_us = 1000;    // median
constexpr double memory_bound_mib = 4096;  // of the leader
constexpr double pace_per_s = 20'000;
constexpr std::size_t agents = 64, members_each = 16;  // of the throughput

// ---- processes -----------------------------------------------------------------------------------------------------

// Returns an address of this machine that was free a moment ago.
std::string free_address() {
  const Fd socket = std::move(good(link::listen_at("127.0.0.1:0")).front());
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

// A leader on a core, and the key that its agents need.
class LeaderProcess {
 public:
  explicit LeaderProcess(int core) {
    if (const Status made = link::make_key(key_path()); !made) die(made.error().text);
    process_ = std::make_unique<bench::DaemonProcess>(
        std::vector<std::string>{"--leader", "--listen", address_, "--key", key_path()}, core);
  }
  std::string key_path() const { return directory_.path() + "/key"; }
  std::string key() const { return good(link::read_key(key_path())); }
  const std::string& address() const { return address_; }
  std::string socket() const { return process_->socket(); }

  // CPU seconds of the thread that decides, which is the first one.
  double thread_cpu_s() const { return cpu_s(std::to_string(process_->pid())); }
  // CPU seconds of all threads.
  double cpu_s() const {
    double sum_s = 0;
    for (const auto& thread : std::filesystem::directory_iterator(about("/task")))
      sum_s += cpu_s(thread.path().filename());
    return sum_s;
  }
  double memory_mib() const {
    std::ifstream status(about("/status"));
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
    die("the leader has ended");
  }

 private:
  std::string about(const std::string& file) const { return "/proc/" + std::to_string(process_->pid()) + file; }
  // The first word of schedstat is the time on a core in nanoseconds: of the user and of the system.
  double cpu_s(const std::string& thread) const {
    std::ifstream stat(about("/task/" + thread + "/schedstat"));
    double ns = 0;
    if (!(stat >> ns)) die("the leader has ended");
    return ns * 1e-9;
  }

  bench::Directory directory_;
  std::string address_ = free_address();
  std::unique_ptr<bench::DaemonProcess> process_;
};

// ---- one grant through an agent ------------------------------------------------------------------------------------

void wait_until_readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  (void)poll(&one, 1, -1);
}

void greet(link::TlsStream& stream) {
  while (!good(stream.greet())) wait_until_readable(stream.fd());
}

void write_all(link::TlsStream& stream, const std::string& bytes) {
  if (good(stream.write(bytes.data(), bytes.size())) != bytes.size()) die("the relay failed");
}

// Returns false if the other end has closed the connection.
bool read_all(link::TlsStream& stream, std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto n = stream.read(bytes.data() + done, bytes.size() - done);
    if (!n) return false;
    if (n.value() == 0) wait_until_readable(stream.fd());
    done += n.value();
  }
  return true;
}

// Answers requests over TLS until the other end closes the connection.
void answer(const Fd& listener, const link::Tls& tls, bench::Frames frames) {
  wait_until_readable(listener.get());
  Fd spare;
  auto stream = good(tls.accepted(link::accept_from(listener, spare).socket));
  greet(stream);
  while (read_all(stream, frames.request)) write_all(stream, frames.answer);
}

// Relays requests of a socket over TLS to a process on the core `peer`, and its answers back.
void relay(int socket, bench::Frames frames, int peer) {
  const std::string address = free_address();
  const auto tls = good(link::Tls::with_key(std::string(32, 'k')));
  const Fd listener = std::move(good(link::listen_at(address)).front());
  std::string head;  // what the link puts before a member's bytes
  link::encode(link::LinkMessage{}, head);
  const bench::Frames with_head{head + frames.request, head + frames.answer};
  const pid_t child = fork();
  if (child == 0) {
    bench::bind_to(peer);
    answer(listener, *tls, with_head);
    _exit(0);
  }
  {
    auto stream = good(tls->connected(good(link::begin_to_connect(good(link::resolve(address)).front()))));
    greet(stream);
    std::string request = with_head.request;
    std::string back = with_head.answer;
    const auto size = static_cast<ssize_t>(frames.request.size());
    while (recv(socket, request.data() + head.size(), frames.request.size(), MSG_WAITALL) == size) {
      write_all(stream, request);
      if (!read_all(stream, back)) die("the relay failed");
      back.copy(frames.answer.data(), frames.answer.size(), head.size());
      if (!bench::transfer_all(socket, frames.answer, false)) die("the relay failed");
    }
  }
  waitpid(child, nullptr, 0);
}

// Measures grants with client and agent on one core, and the leader on the core `peer`.
bool measure_relay(int core, int peer, const std::string& where) {
  const LeaderProcess leader(peer);
  const bench::DaemonProcess agent({"--agent", "--leaders", leader.address(), "--key", leader.key_path()}, core);
  bench::Application asking(agent.socket(), 0, "dev:8:1");
  const bench::Frames frames = asking.frames();
  bench::PingPong bare{frames, core, [&](int socket) { relay(socket, frames, peer); }};
  return bench::print_pairs("cluster", "grant through an agent, " + where,
                            bench::measure_in_turn(asking, bare, samples), relay_bound);
}

// ---- grants for each CPU second ------------------------------------------------------------------------------------

struct Rate {
  double per_cpu_s;
  double per_s;
  double process_share;  // CPU time of all threads for each second of the deciding one
};

Rate saturate(const LeaderProcess& leader, bench::Load& load) {
  load.join();
  load.saturate(500ms);
  const std::int64_t before = load.grants();
  const double thread_s = leader.thread_cpu_s();
  const double process_s = leader.cpu_s();
  const Time begin = node_now();
  load.saturate(4s);
  const double took_s = to_s(node_now() - begin);
  const double cpu_s = std::max(leader.thread_cpu_s() - thread_s, 1e-3);
  const auto grants = static_cast<double>(load.grants() - before);
  return {grants / cpu_s, grants / took_s, (leader.cpu_s() - process_s) / cpu_s};
}

bool measure_rate(int peer) {
  Rate linked{};
  Rate local{};
  {
    const LeaderProcess leader(peer);
    bench::AgentsLoad load(leader.address(), leader.key(), agents, members_each);
    linked = saturate(leader, load);
  }
  {
    const LeaderProcess leader(peer);
    bench::SocketsLoad load(leader.socket(), agents * members_each);
    local = saturate(leader, load);
  }
  const std::string more = ", \"per_s\": " + std::to_string(linked.per_s) +
                           ", \"all_threads\": " + std::to_string(linked.process_share) +
                           ", \"reference_per_s\": " + std::to_string(local.per_s);
  return bench::print("cluster", {"grants from " + std::to_string(agents) + " agents", linked.per_cpu_s, "grants/CPU s",
                                  local.per_cpu_s, grants_bound, linked.per_cpu_s >= grants_bound, more});
}

// ---- many agents ---------------------------------------------------------------------------------------------------

struct ManyAgents {
  double mib_alone;           // memory of the leader without an agent
  double mib_agents;          // with all agents
  double mib_applications;    // with all applications
  double joining_us;          // CPU time of the leader for each application that joins
  double beats_percent;       // of a core, while nobody asks for anything
  double busy_beats_percent;  // the same, when the links were in use a moment ago
  std::vector<double> paced_us;
  double paced_percent;  // of a core
};

ManyAgents measure_agents(int peer, std::size_t count, std::size_t each, bool with_rest) {
  constexpr Duration rest = 5s;
  ManyAgents many{};
  const LeaderProcess leader(peer);
  many.mib_alone = leader.memory_mib();
  bench::AgentsLoad load(leader.address(), leader.key(), count, each);
  many.mib_agents = leader.memory_mib();
  const double before_s = leader.thread_cpu_s();
  load.join();
  many.joining_us = (leader.thread_cpu_s() - before_s) * 1e6 / static_cast<double>(count * each);
  many.mib_applications = leader.memory_mib();
  if (with_rest) {
    load.rest(2s);  // until the trace is written, and beats are what remains
    const auto resting_percent = [&](Duration time) {
      const double cpu_s = leader.thread_cpu_s();
      load.rest(time);
      return (leader.thread_cpu_s() - cpu_s) / to_s(time) * 100;
    };
    many.busy_beats_percent = resting_percent(rest);
    load.rest(10s);
    many.beats_percent = resting_percent(10s);
  }
  const double cpu_s = leader.thread_cpu_s();
  const Time begin = node_now();
  many.paced_us = load.pace(pace_per_s, rest);
  many.paced_percent = (leader.thread_cpu_s() - cpu_s) / to_s(node_now() - begin) * 100;
  return many;
}

bool measure_many(int peer, std::size_t count) {
  constexpr std::size_t each = 10;
  const ManyAgents few = measure_agents(peer, agents, each, false);
  const ManyAgents many = measure_agents(peer, count, each, true);
  const std::string name = std::to_string(count) + " agents, " + std::to_string(count * each) + " applications: ";
  const auto applications = static_cast<double>(count * each);
  const double agent_kib = (many.mib_agents - many.mib_alone) * 1024 / static_cast<double>(count);
  const double application_kib = (many.mib_applications - many.mib_agents) * 1024 / applications;
  bool ok = bench::print("cluster", {name + "memory of the leader", many.mib_applications, "MiB", many.mib_alone,
                                     memory_bound_mib, many.mib_applications <= memory_bound_mib,
                                     ", \"agent_kib\": " + std::to_string(agent_kib) +
                                         ", \"application_kib\": " + std::to_string(application_kib) +
                                         ", \"joining_cpu_us\": " + std::to_string(many.joining_us)});
  ok = bench::print("cluster", {name + "CPU of beats", many.beats_percent, "%", beats_bound_percent,
                                beats_bound_percent, many.beats_percent <= beats_bound_percent,
                                ", \"in_use\": " + std::to_string(many.busy_beats_percent)}) &&
       ok;
  const double median = bench::median(many.paced_us);
  const std::string more = ", \"p99\": " + std::to_string(bench::quantile(many.paced_us, 0.99)) +
                           ", \"grants\": " + std::to_string(many.paced_us.size()) +
                           ", \"cpu_percent\": " + std::to_string(many.paced_percent) +
                           ", \"reference_cpu_percent\": " + std::to_string(few.paced_percent);
  return bench::print("cluster", {name + "grant at 20,000/s", median, "us", bench::median(few.paced_us), paced_bound_us,
                                  median <= paced_bound_us, more}) &&
         ok;
}

// Each agent needs a descriptor here.
void raise_limit_of_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> wanted(argv + 1, argv + argc);
  std::size_t many = 1000;
  for (const std::string& word : wanted)
    if (word.starts_with("--agents=")) many = std::stoul(word.substr(word.find('=') + 1));
  std::erase_if(wanted, [](const std::string& word) { return word.starts_with("--"); });
  const auto is_wanted = [&](const std::string& name) {
    return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
  };
  std::signal(SIGPIPE, SIG_IGN);
  raise_limit_of_files();
  const bench::Cores both = bench::cores();
  bench::bind_to(both.client);
  bool ok = true;
  if (is_wanted("relay")) {
    ok = measure_relay(both.client, both.client, "one core") && ok;
    if (both.other != both.client) ok = measure_relay(both.client, both.other, "two cores") && ok;
  }
  if (is_wanted("rate")) ok = measure_rate(both.other) && ok;
  if (is_wanted("many")) ok = measure_many(both.other, many) && ok;
  return ok ? 0 : 1;
}
