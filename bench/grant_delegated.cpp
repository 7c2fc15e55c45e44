// The session is that of libhocket, in this process. Its accesses are those of a program that has begun a burst: the
// bookkeeping before and after an access, and two readings of the clock. The reference is the same without a hocketd.
#include "grant_delegated.hpp"

#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon_process.hpp"
#include "session/bursts.hpp"
#include "session/session.hpp"

namespace bench {
namespace {

using hocket::from_s;
using hocket::node_now;
using hocket::Time;
using hocket::to_s;
using hocket::runtime::Bursts;
using hocket::runtime::Session;

constexpr double most_us = 0.2;     // bound on an independent access under a delegation
constexpr double most_trips = 2.5;  // bound on a recall, in grants by a message each
constexpr auto delegated_after = std::chrono::milliseconds{50};
constexpr const char* target = "dev:8:1";

// A hocketd that delegates a target soon.
class Delegating {
 public:
  explicit Delegating(int core) : daemon_({"--config", config()}, core) {}
  std::string socket() const { return daemon_.socket(); }

 private:
  std::string config() const {
    const std::string path = directory_.path() + "/hocket.toml";
    std::ofstream(path) << "[coordinator]\npolicy = \"fcfs\"\ndelegate_after_s = 0.05\n";
    return path;
  }
  Directory directory_;
  DaemonProcess daemon_;
};

hocket::runtime::MemberSettings settings_of(const std::string& socket) {
  hocket::runtime::MemberSettings settings;
  settings.socket = socket;
  return settings;
}

hocket::event::Hello member() {
  hocket::event::Hello hello = hello_of(1);
  hello.delegations = true;
  return hello;
}

void access(Session& session) {
  const auto request = session.ask(start_of(0, target));
  session.finish({request, hocket::Duration{1'000}, 1 << 20, true});
}

// Waits until the application was alone for long enough, and takes the delegation with the next request.
void get_delegation(Session& session) {
  access(session);
  std::this_thread::sleep_for(2 * delegated_after);
  access(session);
  std::this_thread::sleep_for(std::chrono::milliseconds{5});  // the lease thread listens 2 ms after a grant
}

// Returns the microseconds of independent accesses, in blocks.
std::vector<double> independent_us(Session& session) {
  constexpr int block = 10'000;
  Bursts bursts(session, from_s(10));
  Bursts::Burst& burst = bursts.of(target);
  std::vector<double> found;
  for (int i = 0; i < 200; ++i) {
    const Time begin = node_now();
    for (int n = 0; n < block; ++n) {
      const Time start = node_now();
      bursts.begin(burst, true, [](hocket::event::StartIo& asked) { asked.file = "/scratch/checkpoint"; });
      const Time end = node_now();
      bursts.end(burst, end, end - start, 1'000, true);
    }
    found.push_back(to_s(node_now() - begin) * 1e6 / block);
  }
  bursts.finish(true);
  return found;
}

// Returns the microseconds of a collective access's request and its end, in rank 0.
std::vector<double> collective_us(Session& session) {
  std::vector<double> found;
  for (int i = 0; i < 10'000; ++i) {
    const Time begin = node_now();
    access(session);
    found.push_back(to_s(node_now() - begin) * 1e6);
  }
  return found;
}

// Another application, with one request at a time.
class Other {
 public:
  explicit Other(const std::string& socket) : client_(good(hocket::bus::Client::connect(socket, from_s(20)))) {
    if (!client_.send(hello_of(2))) die("no HELLO");
  }
  // Returns the microseconds from START_IO to GRANT_IO.
  double wait_us() {
    const Time begin = node_now();
    if (!client_.send(start_of(++last_, target))) die("no START_IO");
    while (true) {
      const auto answer = good(client_.receive(from_s(20)));
      if (!answer) die("no GRANT_IO");
      if (std::holds_alternative<hocket::event::GrantIo>(answer->body)) break;
    }
    const double took = to_s(node_now() - begin) * 1e6;
    hocket::event::FinishIo finish = finish_of(last_);
    finish.phase_over = true;
    if (!client_.send(finish)) die("no FINISH_IO");
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    return took;
  }

 private:
  hocket::bus::Client client_;
  std::uint64_t last_ = 0;
};

bool measure_recall(Session& session, const std::string& socket) {
  Other other(socket);
  std::vector<double> recalled;
  std::vector<double> free;
  for (int i = 0; i < 50; ++i) {
    get_delegation(session);
    recalled.push_back(other.wait_us());
    free.push_back(other.wait_us());
  }
  const double bound = most_trips * median(free);
  const std::string more = ", \"p10\": " + std::to_string(quantile(recalled, 0.1)) +
                           ", \"reference_p10\": " + std::to_string(quantile(free, 0.1));
  return print("grant", {"another application asks, the holder computes", median(recalled), "us", median(free),
                         most_trips, median(recalled) <= bound, more});
}

}  // namespace

bool measure_delegated(int peer) {
  const Delegating daemon(peer);
  Session session(settings_of(daemon.socket()), member(), [](std::string_view why) { die(std::string{why}); });
  session.join();
  std::vector<double> asked;
  for (int i = 0; i < 500; ++i) {
    const Time begin = node_now();
    const auto request = session.ask(start_of(0, "dev:8:" + std::to_string(2 + i)));  // a target of its own
    asked.push_back(to_s(node_now() - begin) * 1e6);
    session.finish({request, {}, 1, true});
  }
  get_delegation(session);
  Session alone(settings_of("/nowhere"), member(), [](std::string_view) {});
  const double independent = median(independent_us(session));
  const double uncoordinated = median(independent_us(alone));
  bool ok = print("grant",
                  {"independent access, delegated", independent, "us", uncoordinated, most_us, independent <= most_us});
  const double collective = median(collective_us(session));
  ok = print("grant",
             {"collective access, delegated", collective, "us", median(asked), 1, collective <= median(asked)}) &&
       ok;
  ok = measure_recall(session, daemon.socket()) && ok;
  session.leave({});
  return ok;
}

}  // namespace bench
