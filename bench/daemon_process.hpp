// A hocketd as a process of a benchmark, on a core of its own, and an application that asks it for grants.
#pragma once

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "bus/client.hpp"
#include "figures.hpp"

namespace bench {

// The cores on which this program may run: the first one, and the last one, which may be the same.
struct Cores {
  int client;
  int other;
};
inline Cores cores() {
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
inline void bind_to(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  if (sched_setaffinity(0, sizeof only, &only) != 0) die("no right to bind to core " + std::to_string(core));
}

// A new directory, which is removed with this object.
class Directory {
 public:
  Directory() {
    std::string name = "/tmp/hocket-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) die("cannot make " + name);
    path_ = name;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A hocketd with default settings and the options `more`, trace included, in a directory of its own, on the given core:
// that of this build, or $HOCKETD. It ends with this object.
class DaemonProcess {
 public:
  DaemonProcess(const std::vector<std::string>& more, int core) {
    std::vector<std::string> words{"hocketd", "--dir", directory_.path()};
    words.insert(words.end(), more.begin(), more.end());
    int ready[2];
    if (pipe(ready) != 0) die("no pipe");
    pid_ = fork();
    if (pid_ == 0) run(words, core, ready[1]);
    close(ready[1]);
    // hocketd prints a line when it listens; one byte of it is enough.
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) die("hocketd did not start in " + directory_.path());
    close(ready[0]);
  }
  ~DaemonProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;
  std::string socket() const { return hocket::bus::socket_in(directory_.path()); }
  pid_t pid() const { return pid_; }

 private:
  [[noreturn]] static void run(std::vector<std::string>& words, int core, int output) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    bind_to(core);
    dup2(output, STDOUT_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const char* const other = getenv("HOCKETD");
    execv(other == nullptr ? HOCKETD : other, arguments.data());
    _exit(127);
  }

  Directory directory_;
  pid_t pid_ = 0;
};

// Sends or receives the whole text; a socket may move less at once. Returns false if the other end has closed it.
inline bool transfer_all(int fd, std::string& bytes, bool receive) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = receive ? recv(fd, bytes.data() + done, bytes.size() - done, 0)
                              : send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

// The frames of a START_IO and of the GRANT_IO that answers it.
struct Frames {
  std::string request;
  std::string answer;
};

// Returns what the application with this number says first.
inline hocket::event::Hello hello_of(int number) {
  const std::string name = "app" + std::to_string(number);
  return {"job-" + name, name, "/usr/bin/" + name, "mpich", "bench", number + 1, 4};
}

inline hocket::event::StartIo start_of(std::uint64_t request, const std::string& target) {
  return {hocket::RequestId{request}, target, "/scratch/checkpoint", "MPI_File_write_at_all", 1 << 20};
}

inline hocket::event::FinishIo finish_of(std::uint64_t request) {
  return {hocket::RequestId{request}, hocket::Duration{1000}, 1 << 20, false};
}

// A connected application that has received WELCOME. It uses one target.
class Application {
 public:
  static constexpr hocket::Duration limit = std::chrono::seconds{20};  // time limit of one answer

  Application(const std::string& socket, int number, std::string target)
      : client_(good(hocket::bus::Client::connect(socket, limit))), target_(std::move(target)) {
    if (!client_.send(hello_of(number))) die("no HELLO");
    expect<hocket::event::Welcome>();
  }

  // Returns the frames of a request and its grant, for references that move the same bytes.
  Frames frames() const {
    Frames frames;
    const auto start = start_of(1, target_);
    if (!hocket::wire::encode(start, frames.request)) die("START_IO is too long");
    if (!hocket::wire::encode(hocket::event::GrantIo{start.request, {}, target_}, frames.answer))
      die("GRANT_IO is too long");
    return frames;
  }

  // Returns the duration from START_IO to GRANT_IO. FINISH_IO is sent outside the measured time.
  hocket::Duration once() {
    const auto start = start_of(++last_, target_);
    const hocket::Time begin = hocket::node_now();
    if (!client_.send(start)) die("no START_IO");
    expect<hocket::event::GrantIo>();
    const hocket::Duration took = hocket::node_now() - begin;
    if (!client_.send(finish_of(last_))) die("no FINISH_IO");
    return took;
  }

 private:
  template <class E>
  void expect() {
    const auto answer = client_.receive(limit);
    if (!answer || !answer.value() || !std::holds_alternative<E>(answer.value()->body))
      die("hocketd did not answer with " + std::string{E::name});
  }

  hocket::bus::Client client_;
  std::string target_;
  std::uint64_t last_ = 0;
};

// A child process at the other end of a socket, which sends an answer of fixed size for each request of fixed size.
// `run` is the child: it returns when its socket is closed.
class PingPong {
 public:
  template <class Run>
  PingPong(const Frames& frames, int core, Run run) : request_(frames.request), answer_(frames.answer) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("no socket");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      bind_to(core);
      close(ends[0]);
      run(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    fd_ = ends[0];
  }
  ~PingPong() {
    close(fd_);
    waitpid(pid_, nullptr, 0);
  }
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;
  // Returns the duration of one request and answer.
  hocket::Duration once() {
    const hocket::Time start = hocket::node_now();
    if (!transfer_all(fd_, request_, false) || !transfer_all(fd_, answer_, true)) die("the ping-pong failed");
    return hocket::node_now() - start;
  }

 private:
  std::string request_;
  std::string answer_;
  int fd_ = -1;
  pid_t pid_ = 0;
};

// Microseconds of grants, and of the reference.
struct Pairs {
  std::vector<double> grants;
  std::vector<double> reference;
};

// Measures grants and their reference in turn. Blocks alternate, so slow changes of the machine affect both kinds.
inline Pairs measure_in_turn(Application& asking, PingPong& bare, std::size_t samples) {
  constexpr int block = 100;
  constexpr int warm_up = 500;
  Pairs pairs;
  for (int i = 0; i < warm_up; ++i) {
    (void)asking.once();
    (void)bare.once();
  }
  while (pairs.grants.size() < samples) {
    for (int i = 0; i < block; ++i) pairs.grants.push_back(hocket::to_s(asking.once()) * 1e6);
    for (int i = 0; i < block; ++i) pairs.reference.push_back(hocket::to_s(bare.once()) * 1e6);
  }
  return pairs;
}

// Prints the medians, and the 99th percentiles beside them. Returns true if the ratio of the medians is within `bound`.
inline bool print_pairs(const char* benchmark, const std::string& name, const Pairs& pairs, double bound) {
  const double value = median(pairs.grants);
  const double reference = median(pairs.reference);
  const std::string more = ", \"p99\": " + std::to_string(quantile(pairs.grants, 0.99)) +
                           ", \"reference_p99\": " + std::to_string(quantile(pairs.reference, 0.99));
  return print(benchmark, {name, value, "us", reference, bound, value <= bound * reference, more});
}

}  // namespace bench
