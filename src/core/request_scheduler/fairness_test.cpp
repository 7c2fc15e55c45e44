// A small job beside a large one, in a simulated server.
#include <gtest/gtest.h>

#include <cmath>
#include <unordered_map>

#include "base/splitmix.hpp"
#include "request_scheduler/request_scheduler_testing.hpp"
#include "request_scheduler/simulated_server_testing.hpp"

namespace hocket::request_scheduler {
namespace {

constexpr SimulatedServer server{1, 1e9, Duration{5'000}, std::chrono::seconds{10}};

SimulatedJob small_job() { return {1, 1, 4, 2, 1 << 20}; }
SimulatedJob large_job() { return {2, 2, 64, 64, 1 << 20}; }

double alone(const SimulatedJob& job) { return simulate("fifo", server, {job}).at(job.application); }

class SmallBesideLarge : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(, SmallBesideLarge,
                         ::testing::Values("job-fair", "user-fair", "user-job-fair", "user-size-fair", "wfq"),
                         test_name);

TEST_P(SmallBesideLarge, KeepsNineTenthsOfItsFairShareOfASaturatedServer) {
  const double fair = alone(small_job()) / 2;
  EXPECT_GE(simulate(GetParam(), server, {small_job(), large_job()}).at(1), 0.9 * fair);
  EXPECT_LT(simulate("fifo", server, {small_job(), large_job()}).at(1), 0.1 * fair);
}

TEST_P(SmallBesideLarge, KeepsItsFairShareWithRequestsOfAnotherSize) {
  SimulatedJob small = small_job();
  small.request_bytes = 64 << 10;
  small.clients = 4;
  SimulatedJob large = large_job();
  large.request_bytes = 4 << 20;
  // Half of the bytes that the server moves in all, which its cost for each request makes fewer than 1 GB/s.
  const auto rates = simulate(GetParam(), server, {small, large});
  EXPECT_GE(rates.at(1), 0.9 * (rates.at(1) + rates.at(2)) / 2);
  const auto fifo = simulate("fifo", server, {small, large});
  EXPECT_LT(fifo.at(1), 0.01 * (fifo.at(1) + fifo.at(2)) / 2);
}

TEST_P(SmallBesideLarge, KeepsItsFairShareIfAllRequestsAreOverdue) {
  SchedulerSettings settings;
  settings.most_wait = std::chrono::microseconds{1};
  const double fair = alone(small_job()) / 2;
  EXPECT_GE(simulate(GetParam(), server, {small_job(), large_job()}, settings).at(1), 0.9 * fair);
}

TEST_P(SmallBesideLarge, KeepsItsFairShareOfSeveralWorkers) {
  SimulatedServer wide = server;
  wide.workers = 4;
  SimulatedJob small = small_job();
  small.clients = 16;  // enough to use half of the server
  const auto rates = simulate(GetParam(), wide, {small, large_job()});
  EXPECT_GE(rates.at(1), 0.9 * (rates.at(1) + rates.at(2)) / 2);
}

// Start-time fair queueing bounds the difference of normalized service of two applications that always have requests:
// |bytes of a / weight of a - bytes of b / weight of b| <= largest of a / weight of a + largest of b / weight of b
// (Goyal et al., theorem 1), over any interval.
class WeightedShares : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(, WeightedShares, ::testing::Range<std::uint64_t>(1, 41));

TEST_P(WeightedShares, AreInProportionToTheWeightsOfBackloggedApplications) {
  std::uint64_t state = GetParam() * splitmix_step;
  const auto below = [&state](std::uint64_t most) { return splitmix(state += splitmix_step) % most; };
  SchedulerSettings settings;
  settings.request_cost = 0;
  auto scheduler = RequestScheduler::create("wfq", settings).value();
  struct Backlogged {
    double weight = 1;
    std::int64_t most_bytes = 1;
    double bytes = 0;
  };
  std::vector<Backlogged> applications(2 + below(6));
  for (Backlogged& one : applications) one = {static_cast<double>(1 + below(1000)), std::int64_t{1} << below(21), 0};
  std::uint64_t ticket = 0;
  std::unordered_map<std::uint64_t, std::pair<std::size_t, std::int64_t>> sent;  // application and bytes by ticket
  const auto send = [&](std::size_t number) {
    const Backlogged& one = applications[number];
    const auto bytes = static_cast<std::int64_t>(1 + below(static_cast<std::uint64_t>(one.most_bytes)));
    ++ticket;
    IoRequest request = of_application(write_at(ticket, ticket, 0, bytes), number + 1);
    request.weight = one.weight;
    sent[ticket] = {number, bytes};
    ASSERT_TRUE(scheduler.add(std::move(request)));
  };
  for (std::size_t i = 0; i < applications.size(); ++i) {
    send(i);
    send(i);
  }
  std::vector<Backlogged> before = applications;  // at the start of an interval, which begins anew at random
  for (int i = 0; i < 2000; ++i) {
    const RequestBatch batch = scheduler.next(Time{}).batch.value();
    ASSERT_EQ(batch.tickets.size(), 1U);
    const auto [number, bytes] = sent.at(batch.tickets.front());
    applications[number].bytes += static_cast<double>(bytes);
    scheduler.done(batch.number);
    send(number);
    if (below(200) == 0) before = applications;
    const auto served = [&](std::size_t a) {
      return (applications[a].bytes - before[a].bytes) / applications[a].weight;
    };
    const auto largest = [&](std::size_t a) {
      return static_cast<double>(applications[a].most_bytes) / applications[a].weight;
    };
    for (std::size_t a = 0; a < applications.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        ASSERT_LE(std::abs(served(a) - served(b)), (largest(a) + largest(b)) * (1 + 1e-6))
            << i << ": " << a << ", " << b;
  }
}

TEST(SizeFair, GivesBySizeBesideALargeJob) {
  const auto rates = simulate("size-fair", server, {small_job(), large_job()});
  const double fair = (rates.at(1) + rates.at(2)) * 4 / 68;
  EXPECT_GE(rates.at(1), 0.9 * fair);
  EXPECT_LE(rates.at(1), 1.1 * fair);
}

// An application whose processes come one after another, and whose requests wait all the time, as on a saturated
// server.
TEST(SizeFair, GivesByTheSizeThatAnApplicationHasNow) {
  auto scheduler = RequestScheduler::create("size-fair").value();
  std::uint64_t ticket = 0;
  const auto send = [&](std::uint64_t application, int processes) {
    IoRequest request;
    request.ticket = ++ticket;
    request.file = ticket;
    request.writes = true;
    request.extents.push_back({0, 4096});
    request.application = application;
    request.processes = processes;
    ASSERT_TRUE(scheduler.add(std::move(request)));
  };
  for (int i = 0; i < 4; ++i) send(1, 1);
  for (int i = 0; i < 4; ++i) send(2, 8);
  int of_first = 0;
  constexpr int choices = 4'000;
  for (int i = 0; i < choices; ++i) {
    const RequestBatch batch = scheduler.next(Time{}).batch.value();
    const bool is_first = scheduler.statistics().contains(1) &&
                          scheduler.statistics().at(1).requests > static_cast<std::uint64_t>(of_first);
    of_first += is_first ? 1 : 0;
    scheduler.done(batch.number);
    send(is_first ? 1 : 2, 8);  // by now both have eight
  }
  EXPECT_NEAR(static_cast<double>(of_first) / choices, 0.5, 0.05);
}

class Unsaturated : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(, Unsaturated,
                         ::testing::Values("job-fair", "user-fair", "size-fair", "user-job-fair", "user-size-fair",
                                           "wfq"),
                         test_name);

TEST_P(Unsaturated, NobodyIsSlowedDownAndALoneJobHasFullSpeed) {
  SimulatedJob small = small_job();
  SimulatedJob large = large_job();
  small.pause = std::chrono::milliseconds{40};   // about 5 % of the server
  large.pause = std::chrono::milliseconds{160};  // about 40 %
  const auto rates = simulate(GetParam(), server, {small, large});
  const auto fifo = simulate("fifo", server, {small, large});
  EXPECT_GE(rates.at(1), 0.98 * fifo.at(1));
  EXPECT_GE(rates.at(2), 0.98 * fifo.at(2));
  EXPECT_GE(rates.at(1), 0.95 * alone(small));
  EXPECT_GE(rates.at(2), 0.95 * alone(large));
  EXPECT_GE(simulate(GetParam(), server, {large_job()}).at(2), 0.999 * alone(large_job()));
}

}  // namespace
}  // namespace hocket::request_scheduler
