// Measures the requests per second of each request scheduler on one core, and what a small job keeps beside a large
// one.
//
// A request is added, chosen, and done; the number of waiting requests stays the same. The rate counts all of it: the
// order of overlapping requests, merging, the statistics, and the copies of the batch. The reference is first in first
// out with the same requests. Times are CPU times of the thread.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/splitmix.hpp"
#include "figures.hpp"
#include "request_scheduler/request_scheduler.hpp"
#include "request_scheduler/simulated_server_testing.hpp"

namespace {

using namespace hocket;
using namespace hocket::request_scheduler;

// The requests of a measurement.
struct Shape {
  std::size_t waiting;       // requests that wait before each choice
  std::size_t applications;  // they take turns; each has a file of its own
  std::int64_t bytes;
};

// Keeps a scheduler filled with requests. The offsets of an application rise, three in four contiguously.
class Load {
 public:
  Load(std::string_view name, Shape shape)
      : shape_(shape), scheduler_(RequestScheduler::create(name, settings()).value()), offsets_(shape.applications) {
    while (scheduler_.waiting() < shape_.waiting) send();
    run(20'000);
  }

  // Returns the nanoseconds of a request.
  double sample(std::size_t requests) {
    const double start = bench::cpu_s();
    const std::size_t carried_out = run(requests);
    return (bench::cpu_s() - start) * 1e9 / static_cast<double>(carried_out);
  }

 private:
  static SchedulerSettings settings() {
    SchedulerSettings settings;
    settings.twins_servers = 4;
    return settings;
  }

  void send() {
    const std::uint64_t application = ++ticket_ % shape_.applications;
    const std::uint64_t random = splitmix(ticket_ * splitmix_step);
    std::int64_t& offset = offsets_[application];
    if (random % 4 == 0) offset += shape_.bytes * 8;
    IoRequest request;
    request.ticket = ticket_;
    request.file = application + 1;
    request.writes = true;
    request.extents.push_back({offset, shape_.bytes});
    request.application = application;
    request.user = application / 4;
    request.processes = static_cast<int>(application) + 1;
    request.arrival = now_;
    offset += shape_.bytes;
    if (!scheduler_.add(std::move(request))) std::abort();
  }

  std::size_t run(std::size_t requests) {
    std::size_t carried_out = 0;
    while (carried_out < requests) {
      now_ += Duration{1'000};
      NextBatch next = scheduler_.next(now_);
      if (!next.batch) {
        now_ = std::max(now_, next.again.value());
        continue;
      }
      carried_out += next.batch->tickets.size();
      scheduler_.done(next.batch->number);
      while (scheduler_.waiting() < shape_.waiting) send();
    }
    return carried_out;
  }

  Shape shape_;
  RequestScheduler scheduler_;
  std::vector<std::int64_t> offsets_;
  std::uint64_t ticket_ = 0;
  Time now_{};
};

constexpr double least_rate = 200'000;

std::string name_of(std::string_view algorithm, const Shape& shape) {
  return std::string{algorithm} + ", " + std::to_string(shape.waiting) + " waiting, " +
         std::to_string(shape.applications) + (shape.applications == 1 ? " application, " : " applications, ") +
         std::to_string(shape.bytes >> 10) + " KiB";
}

// Samples of an algorithm and of the reference alternate.
bool rate(std::string_view algorithm, const Shape& shape) {
  constexpr int samples = 7;
  Load load{algorithm, shape};
  Load reference{"fifo", shape};
  std::vector<double> rates;
  std::vector<double> reference_rates;
  for (int i = 0; i < samples; ++i) {
    rates.push_back(1e9 / load.sample(20'000));
    reference_rates.push_back(1e9 / reference.sample(20'000));
  }
  const double median = bench::median(rates);
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return bench::print(
      "request-schedulers",
      {name_of(algorithm, shape), median, "requests/s", bench::median(reference_rates), least_rate,
       median >= least_rate, ", \"least\": " + std::to_string(*least) + ", \"most\": " + std::to_string(*most)});
}

constexpr SimulatedServer server{1, 1e9, Duration{5'000}, std::chrono::seconds{20}};

// The part of its fair share that a job of 2 clients keeps beside one of 64 on a saturated server (simulated). The
// reference is the same beside the same job under first in first out.
bool fair_share(std::string_view algorithm, double fair_part) {
  const SimulatedJob small{1, 1, 4, 2, 1 << 20};
  const SimulatedJob large{2, 2, 64, 64, 1 << 20};
  const double fair = fair_part * simulate("fifo", server, {small}).at(1);
  const double kept = simulate(algorithm, server, {small, large}).at(1) / fair;
  const double by_fifo = simulate("fifo", server, {small, large}).at(1) / fair;
  return bench::print("request-schedulers", {std::string{algorithm} + ", small beside large, saturated", kept,
                                             "of fair share", by_fifo, 0.9, kept >= 0.9});
}

// The part of its bandwidth alone that the same small job keeps on a server that is half used.
bool unsaturated(std::string_view algorithm) {
  const SimulatedJob small{1, 1, 4, 2, 1 << 20, std::chrono::milliseconds{40}};
  const SimulatedJob large{2, 2, 64, 64, 1 << 20, std::chrono::milliseconds{140}};
  const double alone = simulate("fifo", server, {small}).at(1);
  const double kept = simulate(algorithm, server, {small, large}).at(1) / alone;
  const double by_fifo = simulate("fifo", server, {small, large}).at(1) / alone;
  return bench::print("request-schedulers", {std::string{algorithm} + ", small beside large, half used", kept,
                                             "of its speed alone", by_fifo, 0.95, kept >= 0.95});
}

}  // namespace

int main() {
  bool ok = true;
  for (const std::string_view algorithm : algorithm_names()) {
    for (const std::size_t applications : {1, 64}) {
      for (const std::size_t waiting : {1, 16, 1'000}) {
        for (const std::int64_t bytes : {4 << 10, 1 << 20}) ok &= rate(algorithm, {waiting, applications, bytes});
      }
    }
  }
  for (const std::string_view algorithm : {"job-fair", "user-fair", "user-job-fair", "user-size-fair", "wfq"}) {
    ok &= fair_share(algorithm, 1.0 / 2);
  }
  ok &= fair_share("size-fair", 4.0 / 68);
  for (const std::string_view algorithm : {"job-fair", "user-fair", "size-fair", "user-job-fair", "user-size-fair"}) {
    ok &= unsaturated(algorithm);
  }
  return ok ? 0 : 1;
}
