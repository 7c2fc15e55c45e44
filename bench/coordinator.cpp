// Measures the events per second of the coordinator on one core. It also measures if idle applications make an event
// more expensive.
//
// The reference is the same events, made in the same way, with one hash lookup of their member instead of the
// coordinator. Events are made one at a time in reused memory, as the daemon does. TICKs that the coordinator
// requests are sent and counted. Times are CPU times of the thread: other programs then cost cache, but no waiting
// for the core.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/coordinator.hpp"
#include "figures.hpp"

namespace {

using namespace hocket;

// The pattern of a load. In each round all applications send START_IO, then all RENEW_IO, then all FINISH_IO; every
// fourth round ends with an IO_PHASE of each. All requests of a round are pending at once.
struct Shape {
  const char* name;
  std::size_t group;  // number of applications that share a target
};

// Sends the events of a load to a handler: the coordinator, or the reference.
class Load {
 public:
  // `active` of the `applications` do I/O, spread evenly. Their order differs from the order of arrival, so the cache
  // gains nothing from it.
  Load(Shape shape, std::size_t applications, std::size_t active) : applications_(applications), order_(active) {
    for (std::size_t i = 0; i < active; ++i) order_[i] = i * (applications / active);
    // The seed is fixed, so every run has the same order.
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64{7});
    for (std::size_t i = 0; i < applications; ++i) targets_.push_back("dev:8:" + std::to_string(i / shape.group));
    start_.body = event::StartIo{{}, {}, "/scratch/checkpoint", "MPI_File_write_all", 1 << 20};
    renew_.body = event::RenewIo{};
    finish_.body = event::FinishIo{{}, std::chrono::milliseconds{1}, 1 << 20, shape.group > 1};
    phase_.body = event::IoPhase{};
  }

  // Connects all applications: HELLO and a first IO_PHASE of each.
  template <class Handler>
  void connect(Handler& handler) {
    for (std::size_t i = 0; i < applications_; ++i) {
      event::Event hello;
      hello.body = event::Hello{"job" + std::to_string(i), "jacobi", "/opt/jacobi", "mpich", "0.1", 1, 64};
      send(handler, hello, i);
      send_phase(handler, i, 0);
    }
  }

  // Returns the number of events.
  template <class Handler>
  std::size_t run(Handler& handler, std::size_t rounds) {
    const std::size_t before = sent_;
    for (std::size_t round = 0; round < rounds; ++round) {
      ++request_.value;
      for (const std::size_t i : order_) send_start(handler, i);
      for (const std::size_t i : order_) send_request<event::RenewIo>(handler, renew_, i);
      for (const std::size_t i : order_) send_request<event::FinishIo>(handler, finish_, i);
      if (request_.value % 4 != 0) continue;
      for (const std::size_t i : order_) send_phase(handler, i, static_cast<std::int64_t>(request_.value / 4));
    }
    return sent_ - before;
  }

 private:
  // Sends one event and the TICKs that become due. Simulated time advances by 1 µs for each event.
  template <class Handler>
  void send(Handler& handler, event::Event& event, std::size_t application) {
    event.origin.member = MemberId{application + 1};
    event.time = now_ += std::chrono::microseconds{1};
    ++sent_;
    handler.handle(event);
    while (const auto deadline = handler.deadline()) {
      if (*deadline > now_) break;
      tick_.time = now_;
      ++sent_;
      handler.handle(tick_);
    }
  }
  template <class Handler>
  void send_start(Handler& handler, std::size_t application) {
    auto& start = std::get<event::StartIo>(start_.body);
    start.request = request_;
    start.target = targets_[application];
    send(handler, start_, application);
  }
  template <class Body, class Handler>
  void send_request(Handler& handler, event::Event& event, std::size_t application) {
    std::get<Body>(event.body).request = request_;
    send(handler, event, application);
  }
  template <class Handler>
  void send_phase(Handler& handler, std::size_t application, std::int64_t index) {
    auto& phase = std::get<event::IoPhase>(phase_.body);
    phase.index = index;
    phase.start = now_;
    phase.end = now_;
    send(handler, phase_, application);
  }

  std::size_t applications_;
  std::vector<std::size_t> order_;
  std::vector<std::string> targets_;
  event::Event start_, renew_, finish_, phase_;
  event::Event tick_{{}, {}, event::Tick{}};
  RequestId request_;
  Time now_{};
  std::size_t sent_ = 0;
};

// The reference: looks the member up and does nothing else.
class Lookup {
 public:
  void handle(const event::Event& event) { ++seen_[event.origin.member]; }
  static std::optional<Time> deadline() { return std::nullopt; }

 private:
  std::unordered_map<MemberId, std::uint64_t> seen_;
};

// A load and its handler, warmed up by four rounds.
template <class Handler>
class Bench {
 public:
  template <class... Args>
  Bench(Shape shape, std::size_t applications, std::size_t active, Args&&... args)
      : load_(shape, applications, active), handler_(std::forward<Args>(args)...), rounds_(200'000 / (3 * active) + 1) {
    load_.connect(handler_);
    load_.run(handler_, 4);
  }

  // Returns the nanoseconds of an event in one sample of about 200,000 events.
  double sample() {
    const double start = bench::cpu_s();
    const std::size_t events = load_.run(handler_, rounds_);
    return (bench::cpu_s() - start) * 1e9 / static_cast<double>(events);
  }

 private:
  Load load_;
  Handler handler_;
  std::size_t rounds_;
};

// Returns the medians of interleaved samples, in nanoseconds per event.
template <class A, class B>
std::pair<double, double> compare(A& a, B& b, int samples) {
  std::vector<double> of_a;
  std::vector<double> of_b;
  for (int i = 0; i < samples; ++i) {
    of_a.push_back(a.sample());
    of_b.push_back(b.sample());
  }
  return {bench::median(of_a), bench::median(of_b)};
}

// Leases, idle hold, time slice and keep-alive have the daemon's defaults.
coordinator::CoordinatorSettings settings_of(const policy::Policy& policy) {
  return {{&policy},
          std::chrono::seconds{10},
          std::chrono::milliseconds{20},
          std::chrono::minutes{1},
          std::chrono::seconds{1}};
}

// Measures one load; the bound is 500,000 events per second.
bool events_per_second(Shape shape, std::size_t applications, const policy::Policy& policy) {
  Bench<coordinator::Coordinator> bench{shape, applications, applications, settings_of(policy)};
  Bench<Lookup> lookup{shape, applications, applications};
  const auto [ns, lookup_ns] = compare(bench, lookup, 9);
  constexpr double bound = 500'000;
  const std::string name =
      std::string{shape.name} + ", " + std::string{policy.name} + ", " + std::to_string(applications);
  return bench::print("coordinator", {name, 1e9 / ns, "events/s", 1e9 / lookup_ns, bound, 1e9 / ns >= bound});
}

// Measures an event of the same 64 active applications beside 9,936 idle ones and beside 936.
bool growth() {
  constexpr Shape shape{"own target", 1};
  Bench<coordinator::Coordinator> many{shape, 10'000, 64, settings_of(policy::fcfs)};
  Bench<coordinator::Coordinator> few{shape, 1'000, 64, settings_of(policy::fcfs)};
  const auto [ns_many, ns_few] = compare(many, few, 15);
  constexpr double bound = 1.3;
  return bench::print("coordinator", {"growth, 64 active, 10000 beside 1000", ns_many, "ns/event", ns_few, bound,
                                      ns_many <= bound * ns_few});
}

}  // namespace

int main() {
  bool ok = true;
  // The loads: no contention, some contention, and all applications on one target.
  for (const std::size_t applications : {1'000u, 10'000u}) {
    ok &= events_per_second({"own target", 1}, applications, policy::fcfs);
    ok &= events_per_second({"groups of 10", 10}, applications, policy::fcfs);
    ok &= events_per_second({"one target", 100'000}, applications, policy::interfere);
    ok &= events_per_second({"one target", 100'000}, applications, policy::fcfs);
    ok &= events_per_second({"own target", 1}, applications, policy::cost);
    ok &= events_per_second({"groups of 10", 10}, applications, policy::cost);
  }
  ok &= growth();
  return ok ? 0 : 1;
}
