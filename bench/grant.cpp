// Measures START_IO → GRANT_IO without contention, against a hocketd process of its own. The reference is a bare
// ping-pong between two processes over a Unix socket, with messages of the same sizes. Both alternate in blocks of
// one run and are compared by their medians. Both peers run on the same core, once that of the client and once another:
// the scheduler would place them differently, and to wake another core takes ten times as long. As in a real client,
// FINISH_IO follows each grant without an answer, so the next request queues behind it.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bus/client.hpp"
#include "figures.hpp"

namespace {

using namespace hocket;

// Samples of each kind, samples in a block, discarded samples, and the bound on the ratio of the medians.
constexpr int samples = 10'000;
constexpr int block = 100;
constexpr int warm_up = 500;
constexpr double bound = 2.5;
constexpr Duration limit = std::chrono::seconds{20};  // time limit of one answer

[[noreturn]] void die(const std::string& text) {
  std::fprintf(stderr, "bench_grant: %s\n", text.c_str());
  std::exit(2);
}

// The cores on which this program may run: the first one, and the last one, which may be the same.
struct Cores {
  int client;
  int other;
};
Cores cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) die("no core is known");
  Cores found{-1, -1};
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    if (found.client < 0) found.client = core;
    found.other = core;
  }
  return found;
}

// Binds this process to a core.
void bind_to(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  if (sched_setaffinity(0, sizeof only, &only) != 0) die("no right to bind to core " + std::to_string(core));
}

// A hocketd with default settings, trace included, in a directory of its own, on the given core. It ends with this
// object.
class DaemonProcess {
 public:
  explicit DaemonProcess(int core) {
    std::string name = "/tmp/hocket-bench-XXXXXX";
    directory_ = mkdtemp(name.data());
    int ready[2];
    if (pipe(ready) != 0) die("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      bind_to(core);
      dup2(ready[1], STDOUT_FILENO);
      execl(HOCKETD, "hocketd", "--dir", directory_.c_str(), nullptr);
      _exit(127);
    }
    close(ready[1]);
    // hocketd prints a line when it listens; one byte of it is enough.
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) die("hocketd did not start in " + directory_);
    close(ready[0]);
  }
  ~DaemonProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(directory_);
  }
  std::string socket() const { return bus::socket_in(directory_); }

 private:
  std::string directory_;
  pid_t pid_ = 0;
};

// Sends or receives the whole text; a socket may move less at once.
void transfer_all(int fd, std::string& bytes, bool receive) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = receive ? recv(fd, bytes.data() + done, bytes.size() - done, 0)
                              : send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) die("the ping-pong failed");
    done += static_cast<std::size_t>(n);
  }
}

// A child process on the given core that answers each message of the size of a START_IO with one of the size of a
// GRANT_IO.
class PingPong {
 public:
  PingPong(std::size_t request_bytes, std::size_t answer_bytes, int core)
      : request_(request_bytes, 'x'), answer_(answer_bytes, 'x') {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("no socket");
    pid_ = fork();
    if (pid_ == 0) {
      bind_to(core);
      close(ends[0]);
      while (recv(ends[1], request_.data(), request_.size(), MSG_WAITALL) == static_cast<ssize_t>(request_.size())) {
        transfer_all(ends[1], answer_, false);
      }
      _exit(0);
    }
    close(ends[1]);
    fd_ = ends[0];
  }
  ~PingPong() {
    close(fd_);
    waitpid(pid_, nullptr, 0);
  }
  // Returns the duration of one request and answer.
  Duration once() {
    const Time start = node_now();
    transfer_all(fd_, request_, false);
    transfer_all(fd_, answer_, true);
    return node_now() - start;
  }

 private:
  std::string request_;
  std::string answer_;
  int fd_ = -1;
  pid_t pid_ = 0;
};

// A connected application that has received WELCOME.
class Application {
 public:
  Application(const DaemonProcess& daemon, int number) : client_(connect(daemon)) {
    const std::string name = "app" + std::to_string(number);
    const event::Hello hello{"job-" + name, name, "/usr/bin/" + name, "mpich", "bench", number + 1, 4};
    if (!client_.send(hello)) die("no HELLO");
    expect<event::Welcome>();
  }

  // Returns the next request, for the same target each time.
  event::StartIo request() {
    return {RequestId{++last_}, "dev:8:1", "/scratch/checkpoint", "MPI_File_write_at_all", 1 << 20};
  }

  // Returns the duration from START_IO to GRANT_IO. FINISH_IO is sent outside the measured time.
  Duration once() {
    const event::StartIo start = request();
    const Time begin = node_now();
    if (!client_.send(start)) die("no START_IO");
    expect<event::GrantIo>();
    const Duration took = node_now() - begin;
    if (!client_.send(event::FinishIo{start.request, Duration{1000}, 1 << 20, false})) die("no FINISH_IO");
    return took;
  }

 private:
  static bus::Client connect(const DaemonProcess& daemon) {
    auto client = bus::Client::connect(daemon.socket(), limit);
    if (!client) die(client.error().text);
    return std::move(client).value();
  }

  template <class E>
  void expect() {
    const auto answer = client_.receive(limit);
    if (!answer || !answer.value() || !std::holds_alternative<E>(answer.value()->body)) {
      die("hocketd did not answer with " + std::string{E::name});
    }
  }

  bus::Client client_;
  std::uint64_t last_ = 0;
};

// Measures one application's grants with `connected` applications in all, and hocketd on the core `peer`. Returns true
// if the bound holds.
bool measure(int connected, int peer, const std::string& where) {
  const DaemonProcess daemon(peer);
  std::vector<Application> applications;
  for (int i = 0; i < connected; ++i) applications.emplace_back(daemon, i);
  // Only the last application requests the target; the others are connected and idle.
  Application& asking = applications.back();
  std::string request;
  std::string answer;
  const event::StartIo start = asking.request();
  if (!wire::encode(start, request)) die("START_IO is too long");
  if (!wire::encode(event::GrantIo{start.request, {}, start.target}, answer)) die("GRANT_IO is too long");
  // The sizes come from real frames.
  PingPong bare{request.size(), answer.size(), peer};

  std::vector<double> grants;  // microseconds
  std::vector<double> pings;
  for (int i = 0; i < warm_up; ++i) {
    (void)asking.once();
    (void)bare.once();
  }
  // Blocks alternate, so slow changes of the machine affect both kinds.
  while (grants.size() < samples) {
    for (int i = 0; i < block; ++i) grants.push_back(to_s(asking.once()) * 1e6);
    for (int i = 0; i < block; ++i) pings.push_back(to_s(bare.once()) * 1e6);
  }
  const double value = bench::median(grants);
  const double reference = bench::median(pings);
  const std::string name =
      std::to_string(connected) + " application" + (connected == 1 ? "" : "s") + " connected, " + where;
  const std::string more = ", \"p99\": " + std::to_string(bench::quantile(grants, 0.99)) +
                           ", \"reference_p99\": " + std::to_string(bench::quantile(pings, 0.99));
  return bench::print("grant", {name, value, "us", reference, bound, value <= bound * reference, more});
}

}  // namespace

int main() {
  const Cores both = cores();
  bind_to(both.client);
  bool ok = true;
  for (const int connected : {1, 64}) {
    ok = measure(connected, both.client, "one core") && ok;
    if (both.other != both.client) ok = measure(connected, both.other, "two cores") && ok;
  }
  return ok ? 0 : 1;
}
