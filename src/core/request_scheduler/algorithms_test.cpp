// The characteristic of each algorithm, which first in first out does not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "request_scheduler/request_scheduler.hpp"
#include "request_scheduler/request_scheduler_testing.hpp"

namespace hocket::request_scheduler {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using Batches = std::vector<Tickets>;

constexpr std::int64_t KiB = 1 << 10;
constexpr std::int64_t MiB = 1 << 20;

// The algorithm gives these batches, and first in first out does not.
void expect_only(std::string_view name, const std::vector<IoRequest>& requests, const Batches& batches,
                 const SchedulerSettings& settings = {}) {
  EXPECT_EQ(batches_of(name, requests, settings), batches);
  EXPECT_NE(batches_of("fifo", requests, settings), batches);
}

TEST(Fifo, CarriesOutRequestsInTheOrderOfArrivalAndAlone) {
  EXPECT_THAT(batches_of("fifo", {write_at(1, 1, 4, 4), write_at(2, 2, 0, 1), write_at(3, 1, 0, 4)}),
              ElementsAre(Tickets{1}, Tickets{2}, Tickets{3}));
}

TEST(Sjf, TakesTheQueueWithTheFewestBytesFirst) {
  expect_only("sjf", {write_at(1, 1, 0, 4), write_at(2, 1, 9, 4), write_at(3, 2, 0, 6), read_at(4, 1, 50, 5)},
              {{4}, {3}, {1}, {2}});
}

TEST(ToAgg, TakesTheOldestWithWhatTouchesItOnBothSides) {
  expect_only(
      "to-agg",
      {write_at(1, 1, 8, 4), write_at(2, 2, 0, 4), write_at(3, 1, 4, 4), write_at(4, 1, 12, 4), write_at(5, 1, 20, 4)},
      {{3, 1, 4}, {2}, {5}});
}

TEST(ToAgg, KeepsTheBoundsOfABatch) {
  SchedulerSettings settings;
  settings.most_bytes = 8;
  expect_only("to-agg", {write_at(1, 1, 0, 4), write_at(2, 1, 4, 4), write_at(3, 1, 8, 4), write_at(4, 1, 12, 40)},
              {{1, 2}, {3}, {4}}, settings);
}

TEST(Hbrr, GivesEachFileAQuantumOfRequestsByOffset) {
  SchedulerSettings settings;
  settings.hbrr_quantum = 2;
  expect_only(
      "hbrr",
      {write_at(1, 1, 80, 4), write_at(2, 1, 40, 4), write_at(3, 1, 0, 4), write_at(4, 2, 0, 4), read_at(5, 1, 500, 4)},
      {{3, 2}, {4}, {5}, {1}}, settings);
}

TEST(Mlf, LetsSmallRequestsPassLargeOnesWhoseQuantumStillRises) {
  // 64 KiB need 3 doublings of 8 KiB.
  expect_only("mlf", {write_at(1, 1, 0, 64 * KiB), write_at(2, 2, 0, 4 * KiB), write_at(3, 2, MiB, 4 * KiB)},
              {{2}, {3}, {1}});
}

TEST(Mlf, VisitsFilesInTurn) {
  expect_only("mlf", {write_at(1, 1, 90, 4), write_at(2, 1, 0, 4), write_at(3, 2, 0, 4)}, {{2}, {3}, {1}});
}

TEST(Aioli, TakesTheRequestsOfAFileByOffset) {
  expect_only("aioli", {write_at(1, 1, 64 * KiB, 4 * KiB), write_at(2, 1, 0, 4 * KiB), write_at(3, 1, 32 * KiB, 4)},
              {{2}, {3}, {1}});
}

TEST(Aioli, GoesOnWithAFileUntilItsQuantumIsUsed) {
  SchedulerSettings settings;
  settings.aioli_quantum = 8 * KiB;
  expect_only("aioli",
              {write_at(1, 1, 0, 4 * KiB), write_at(2, 2, 0, 4), write_at(3, 2, 8, 4),
               write_at(4, 1, 32 * KiB, 4 * KiB), write_at(5, 1, 64 * KiB, 4 * KiB)},
              {{1}, {4}, {2}, {3}, {5}}, settings);
}

TEST(Aioli, LetsSmallRequestsPassLargeOnesWhoseQuantumStillRises) {
  expect_only("aioli", {write_at(1, 1, 0, MiB), write_at(2, 2, 0, 4 * KiB), write_at(3, 3, 0, 4 * KiB)},
              {{2}, {3}, {1}});
}

// The requests of 4 KiB in the first batch of a queue that had one request of `before` bytes in its last turn.
std::size_t requests_after(std::string_view name, std::int64_t before) {
  SchedulerSettings settings;
  settings.aioli_quantum = 8 * KiB;
  auto scheduler = RequestScheduler::create(name, settings).value();
  (void)scheduler.add(write_at(1, 1, 0, before));
  scheduler.done(scheduler.next(Time{}).batch->number);
  for (std::uint64_t i = 0; i < 8; ++i) {
    (void)scheduler.add(write_at(i + 2, 1, MiB + static_cast<std::int64_t>(i) * 4 * KiB, 4 * KiB));
  }
  return scheduler.next(Time{}).batch->tickets.size();
}

TEST(Aioli, AdaptsTheQuantumOfAQueueToWhatItsLastTurnUsed) {
  EXPECT_EQ(requests_after("aioli", 4 * KiB), 1U);   // half of 8 KiB
  EXPECT_EQ(requests_after("aioli", 8 * KiB), 2U);   // as before
  EXPECT_EQ(requests_after("aioli", 12 * KiB), 3U);  // one and a half
  EXPECT_EQ(requests_after("aioli", 16 * KiB), 4U);  // twice
  EXPECT_EQ(requests_after("fifo", 16 * KiB), 1U);
}

// After a batch of two, a single request that does not follow it lets its queue wait for a neighbour.
template <class Check>
void after_a_batch_of_two(std::string_view name, Check check) {
  auto scheduler = RequestScheduler::create(name).value();
  ASSERT_TRUE(scheduler.add(write_at(1, 1, 0, 4)));
  ASSERT_TRUE(scheduler.add(write_at(2, 1, 4, 4)));
  const auto first = scheduler.next(Time{}).batch;
  ASSERT_TRUE(first);
  scheduler.done(first->number);
  ASSERT_TRUE(scheduler.add(write_at(3, 1, 12, 4)));
  check(scheduler, first->tickets.size());
}

class AggregationWaits : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(, AggregationWaits, ::testing::Values("aioli", "mlf"));

TEST_P(AggregationWaits, OnceForNeighboursAndSaysUntilWhen) {
  after_a_batch_of_two(GetParam(), [](RequestScheduler& scheduler, std::size_t first) {
    EXPECT_EQ(first, 2U);
    const NextBatch next = scheduler.next(Time{microseconds{10}});
    EXPECT_FALSE(next.batch);
    EXPECT_EQ(next.again, Time{microseconds{910}});
    EXPECT_FALSE(scheduler.next(Time{microseconds{909}}).batch);
    EXPECT_THAT(scheduler.next(Time{microseconds{910}}).batch->tickets, ElementsAre(3));
  });
  after_a_batch_of_two("fifo", [](RequestScheduler& scheduler, std::size_t first) {
    EXPECT_EQ(first, 1U);
    EXPECT_TRUE(scheduler.next(Time{microseconds{10}}).batch);
  });
}

TEST_P(AggregationWaits, UntilTheNeighbourComes) {
  after_a_batch_of_two(GetParam(), [](RequestScheduler& scheduler, std::size_t) {
    EXPECT_FALSE(scheduler.next(Time{microseconds{10}}).batch);
    ASSERT_TRUE(scheduler.add(write_at(4, 1, 8, 4)));
    EXPECT_THAT(scheduler.next(Time{microseconds{20}}).batch->tickets, ElementsAre(4, 3));
  });
}

TEST_P(AggregationWaits, AfterAShift) {
  auto scheduler = RequestScheduler::create(GetParam()).value();
  const auto carry_out = [&](std::uint64_t ticket, std::int64_t at) {
    ASSERT_TRUE(scheduler.add(write_at(ticket, 1, at, 4)));
    const auto next = scheduler.next(Time{}).batch;
    ASSERT_TRUE(next);
    scheduler.done(next->number);
  };
  carry_out(1, 100);
  carry_out(2, 0);  // one process lags behind
  ASSERT_TRUE(scheduler.add(write_at(3, 1, 104, 4)));
  EXPECT_FALSE(scheduler.next(Time{}).batch);
  ASSERT_TRUE(scheduler.add(write_at(4, 1, 4, 4)));  // and comes
  EXPECT_THAT(scheduler.next(Time{}).batch->tickets, ElementsAre(4));
}

TEST_P(AggregationWaits, ButNotOtherFiles) {
  after_a_batch_of_two(GetParam(), [](RequestScheduler& scheduler, std::size_t) {
    ASSERT_TRUE(scheduler.add(write_at(4, 2, 0, 4)));
    EXPECT_THAT(scheduler.next(Time{}).batch->tickets, ElementsAre(4));
    EXPECT_FALSE(scheduler.next(Time{}).batch);
  });
}

SchedulerSettings four_servers() {
  SchedulerSettings settings;
  settings.twins_servers = 4;
  settings.twins_stripe = 100;
  return settings;
}

TEST(Twins, AccessesOneDataServerInEachWindow) {
  auto scheduler = RequestScheduler::create("twins", four_servers()).value();
  ASSERT_TRUE(scheduler.add(write_at(1, 1, 100, 10)));  // server 1
  ASSERT_TRUE(scheduler.add(write_at(2, 1, 0, 10)));    // server 0
  ASSERT_TRUE(scheduler.add(write_at(3, 2, 420, 10)));  // server 0
  ASSERT_TRUE(scheduler.add(write_at(4, 2, 300, 10)));  // server 3
  EXPECT_THAT(scheduler.next(Time{}).batch->tickets, ElementsAre(2));
  EXPECT_THAT(scheduler.next(Time{milliseconds{1}}).batch->tickets, ElementsAre(3));
  const NextBatch nothing = scheduler.next(Time{milliseconds{1}});
  EXPECT_FALSE(nothing.batch);
  EXPECT_EQ(nothing.again, Time{milliseconds{2}});
  EXPECT_THAT(scheduler.next(Time{milliseconds{2}}).batch->tickets, ElementsAre(1));
  EXPECT_EQ(scheduler.next(Time{milliseconds{3}}).again, Time{milliseconds{6}});  // no request for server 2
  EXPECT_THAT(scheduler.next(Time{milliseconds{7}}).batch->tickets, ElementsAre(4));
}

TEST(Twins, TakesTheDataServerThatTheRequestNames) {
  auto request = write_at(1, 1, 0, 10);
  request.data_server = 2;
  auto scheduler = RequestScheduler::create("twins", four_servers()).value();
  ASSERT_TRUE(scheduler.add(request));
  EXPECT_EQ(scheduler.next(Time{}).again, Time{milliseconds{4}});
  ASSERT_TRUE(scheduler.add(ordered(2, 2, 1, true, 10)));  // its data server is unknown: any window
  EXPECT_THAT(scheduler.next(Time{}).batch->tickets, ElementsAre(2));
}

IoRequest on_server(IoRequest request, int data_server) {
  request.data_server = data_server;
  return request;
}

TEST(Twins, LearnsTheDataServersFromTheRequests) {
  auto scheduler = RequestScheduler::create("twins").value();
  EXPECT_TRUE(scheduler.needs_data_servers());
  ASSERT_TRUE(scheduler.add(on_server(write_at(1, 1, 0, 10), 202)));
  EXPECT_THAT(scheduler.next(Time{milliseconds{3}}).batch->tickets, ElementsAre(1)) << "there is no other";
  ASSERT_TRUE(scheduler.add(on_server(write_at(2, 1, 100, 10), 202)));
  ASSERT_TRUE(scheduler.add(on_server(write_at(3, 1, 200, 10), 101)));
  ASSERT_TRUE(scheduler.add(on_server(write_at(4, 1, 300, 10), 150)));
  // Windows of 101, 150, 202, in turn from time 0 on.
  EXPECT_THAT(scheduler.next(Time{milliseconds{6}}).batch->tickets, ElementsAre(3));
  EXPECT_EQ(scheduler.next(Time{milliseconds{7}}).again, Time{milliseconds{8}});
  ASSERT_TRUE(scheduler.add(write_at(5, 2, 0, 10)));  // its data server is unknown: any window
  EXPECT_THAT(scheduler.next(Time{milliseconds{7}}).batch->tickets, ElementsAre(5));
  EXPECT_THAT(scheduler.next(Time{milliseconds{8}}).batch->tickets, ElementsAre(4));
  EXPECT_THAT(scheduler.next(Time{milliseconds{10}}).batch->tickets, ElementsAre(2));
}

TEST(Twins, WithoutDataServersIsFirstInFirstOut) {
  EXPECT_EQ(batches_of("twins", {write_at(1, 1, 300, 10), write_at(2, 1, 0, 10)}), (Batches{{1}, {2}}));
}

TEST(Twins, NeedsNoDataServerOfRequestsIfTheSettingsSayHowMany) {
  EXPECT_FALSE(RequestScheduler::create("twins", four_servers()).value().needs_data_servers());
  EXPECT_FALSE(RequestScheduler::create("fifo").value().needs_data_servers());
}

TEST(Twins, LetsAnOverdueRequestGoBeforeItsWindow) {
  SchedulerSettings settings = four_servers();
  settings.most_wait = milliseconds{1};
  auto scheduler = RequestScheduler::create("twins", settings).value();
  ASSERT_TRUE(scheduler.add(write_at(1, 1, 300, 10)));
  EXPECT_EQ(scheduler.next(Time{}).again, Time{milliseconds{1}});
  EXPECT_THAT(scheduler.next(Time{milliseconds{1}}).batch->tickets, ElementsAre(1));
}

TEST(Twins, BeginsWithTheServerOfTheSetting) {
  SchedulerSettings settings = four_servers();
  settings.twins_first = 3;
  expect_only("twins", {write_at(1, 1, 0, 10), write_at(2, 1, 300, 10)}, {{2}, {1}}, settings);
}

// Bytes of each application in the first batches, while all have requests of a size of their own that wait.
std::map<std::uint64_t, double> bytes_shares(std::string_view name, std::vector<IoRequest> like, int batches) {
  SchedulerSettings settings;
  settings.request_cost = 0;
  auto scheduler = RequestScheduler::create(name, settings).value();
  std::uint64_t ticket = 0;
  std::map<std::uint64_t, IoRequest> of_application;
  const auto send = [&](std::uint64_t application) {
    IoRequest request = of_application.at(application);
    request.ticket = request.file = ++ticket;
    (void)scheduler.add(request);
  };
  for (const IoRequest& request : like) of_application[request.application] = request;
  for (const IoRequest& request : like) {
    for (int i = 0; i < 4; ++i) send(request.application);
  }
  std::map<std::uint64_t, double> bytes;
  double all = 0;
  for (int i = 0; i < batches; ++i) {
    const auto next = scheduler.next(Time{}).batch;
    if (!next) return {};
    scheduler.done(next->number);
    std::uint64_t application = 0;
    for (const auto& [number, statistics] : scheduler.statistics()) {
      if (static_cast<double>(statistics.bytes) > bytes[number]) application = number;
      bytes[number] = static_cast<double>(statistics.bytes);
    }
    send(application);
    all += static_cast<double>(next->bytes);
  }
  for (auto& [application, of_it] : bytes) of_it /= all;
  return bytes;
}

TEST(Wfq, DividesBytesByWeight) {
  auto light = of_application(write_at(1, 1, 0, MiB), 1);
  auto heavy = of_application(write_at(2, 1, 0, 64 * KiB), 2);
  heavy.weight = 3;
  const auto shares = bytes_shares("wfq", {light, heavy}, 4'000);
  EXPECT_NEAR(shares.at(2), 0.75, 0.01);
  EXPECT_LT(bytes_shares("fifo", {light, heavy}, 4'000).at(2), 0.1);
}

TEST(Wfq, DoesNotLetAnIdleApplicationSaveUpAShare) {
  SchedulerSettings settings;
  auto scheduler = RequestScheduler::create("wfq", settings).value();
  std::uint64_t ticket = 0;
  const auto send = [&](std::uint64_t application) {
    ++ticket;
    (void)scheduler.add(of_application(write_at(ticket, ticket, 0, MiB), application));
  };
  for (int i = 0; i < 120; ++i) send(1);
  for (int i = 0; i < 100; ++i) scheduler.done(scheduler.next(Time{}).batch->number);
  for (int i = 0; i < 20; ++i) send(2);
  for (int i = 0; i < 20; ++i) scheduler.done(scheduler.next(Time{}).batch->number);
  EXPECT_NEAR(static_cast<double>(scheduler.statistics().at(2).requests), 10, 1);
}

// Application 1 belongs to user 1; 2 and 3 to user 2. They have 8, 1, and 3 processes.
std::map<std::uint64_t, double> token_shares(std::string_view name) {
  return bytes_shares(name,
                      {of_application(write_at(1, 1, 0, MiB), 1, 1, 8), of_application(write_at(2, 1, 0, MiB), 2, 2, 1),
                       of_application(write_at(3, 1, 0, 256 * KiB), 3, 2, 3)},
                      60'000);
}

struct ExpectedShares {
  const char* name;
  double first, second, third;
};
class StatisticalTokens : public ::testing::TestWithParam<ExpectedShares> {};
INSTANTIATE_TEST_SUITE_P(, StatisticalTokens,
                         ::testing::Values(ExpectedShares{"job-fair", 1.0 / 3, 1.0 / 3, 1.0 / 3},
                                           ExpectedShares{"size-fair", 8.0 / 12, 1.0 / 12, 3.0 / 12},
                                           ExpectedShares{"user-job-fair", 1.0 / 2, 1.0 / 4, 1.0 / 4},
                                           ExpectedShares{"user-size-fair", 1.0 / 2, 1.0 / 8, 3.0 / 8}));

TEST_P(StatisticalTokens, DivideBytesByTheRule) {
  const auto shares = token_shares(GetParam().name);
  EXPECT_NEAR(shares.at(1), GetParam().first, 0.02);
  EXPECT_NEAR(shares.at(2), GetParam().second, 0.02);
  EXPECT_NEAR(shares.at(3), GetParam().third, 0.02);
}

TEST(StatisticalTokensUserFair, DividesBetweenUsersAndKeepsOneUsersRequestsInOrder) {
  const auto shares = token_shares("user-fair");
  EXPECT_NEAR(shares.at(1), 0.5, 0.02);
  EXPECT_NEAR(shares.at(2) / shares.at(3), 4, 0.1);  // by their bytes: requests alternate
  EXPECT_NEAR(token_shares("fifo").at(1), 4.0 / 9, 0.01);
}

TEST(StatisticalTokensOpportunity, GivesTheShareOfAnIdleApplicationToTheSameUser) {
  const auto shares = bytes_shares(
      "user-job-fair", {of_application(write_at(1, 1, 0, MiB), 1, 1), of_application(write_at(3, 1, 0, MiB), 3, 2)},
      60'000);  // application 2 of user 2 has no request
  EXPECT_NEAR(shares.at(1), 0.5, 0.02);
}

TEST(StatisticalTokensOpportunity, GivesTheShareOfAnApplicationThatEndsToTheSameUser) {
  auto scheduler = RequestScheduler::create("user-job-fair").value();
  std::uint64_t ticket = 0;
  const auto send = [&](std::uint64_t application, std::uint64_t user) {
    ++ticket;
    (void)scheduler.add(of_application(write_at(ticket, ticket, 0, MiB), application, user));
  };
  send(2, 2);
  scheduler.done(scheduler.next(Time{}).batch->number);  // application 2 of user 2 ends
  for (int i = 0; i < 4'000; ++i) send(1, 1);
  for (int i = 0; i < 4'000; ++i) send(3, 2);
  for (int i = 0; i < 4'000; ++i) scheduler.done(scheduler.next(Time{}).batch->number);
  EXPECT_NEAR(static_cast<double>(scheduler.statistics().at(3).requests), 2'000, 100);
}

TEST(StatisticalTokensSeed, DeterminesTheOrder) {
  std::vector<IoRequest> requests;
  for (std::uint64_t i = 1; i <= 40; ++i) requests.push_back(of_application(write_at(i, i, 0, 4), i % 2));
  SchedulerSettings other;
  other.seed = 2;
  EXPECT_EQ(batches_of("job-fair", requests), batches_of("job-fair", requests));
  EXPECT_NE(batches_of("job-fair", requests), batches_of("job-fair", requests, other));
}

}  // namespace
}  // namespace hocket::request_scheduler
