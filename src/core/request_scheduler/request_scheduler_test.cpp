#include "request_scheduler/request_scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "request_scheduler/request_scheduler_testing.hpp"

namespace hocket::request_scheduler {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What holds for every algorithm.
class EveryRequestScheduler : public ::testing::TestWithParam<std::string_view> {
 protected:
  RequestScheduler scheduler_ = RequestScheduler::create(GetParam()).value();
};
INSTANTIATE_TEST_SUITE_P(, EveryRequestScheduler, ::testing::ValuesIn(algorithm_names()), test_name);

TEST_P(EveryRequestScheduler, CarriesOutOverlappingRequestsInOrder) {
  ASSERT_TRUE(scheduler_.add(write_at(1, 1, 0, 10)));
  ASSERT_TRUE(scheduler_.add(write_at(2, 1, 9, 2)));   // waits for 1
  ASSERT_TRUE(scheduler_.add(write_at(3, 1, 10, 1)));  // overlaps only 2
  const NextBatch first = scheduler_.next(Time{});
  EXPECT_THAT(first.batch->tickets, ElementsAre(1));
  const NextBatch blocked = scheduler_.next(Time{});
  EXPECT_FALSE(blocked.batch);
  EXPECT_FALSE(blocked.again);
  EXPECT_TRUE(scheduler_.done(first.batch->number));
  const NextBatch second = scheduler_.next(Time{seconds{1}});
  EXPECT_THAT(second.batch->tickets, ElementsAre(2));
  EXPECT_TRUE(scheduler_.done(second.batch->number));
  EXPECT_THAT(scheduler_.next(Time{seconds{2}}).batch->tickets, ElementsAre(3));
}

TEST_P(EveryRequestScheduler, OffersConflictWithNothingAndAreAlone) {
  for (const std::uint64_t ticket : {1, 2, 3}) {
    IoRequest offer = write_at(ticket, 1, 0, 10);
    offer.is_offer = true;
    ASSERT_TRUE(scheduler_.add(offer));
  }
  Tickets tickets;
  std::uint64_t last = 0;
  while (const auto next = scheduler_.next(Time{}).batch) {
    ASSERT_EQ(next->tickets.size(), 1U);
    tickets.push_back(next->tickets[0]);
    last = next->number;
  }
  EXPECT_THAT(tickets, ::testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_TRUE(scheduler_.done(last));
  EXPECT_THAT(scheduler_.statistics(), IsEmpty()) << "who offers counts";
}

TEST_P(EveryRequestScheduler, LetsOverlappingReadsRunTogether) {
  ASSERT_TRUE(scheduler_.add(read_at(1, 1, 0, 10)));
  ASSERT_TRUE(scheduler_.add(read_at(2, 1, 0, 10)));
  std::size_t taken = 0;
  Time now{};
  while (const auto next = scheduler_.next(now).batch) taken += next->tickets.size();
  EXPECT_EQ(taken, 2U);
}

TEST_P(EveryRequestScheduler, CarriesOutCallsOfADescriptionInOrderAndAlone) {
  ASSERT_TRUE(scheduler_.add(ordered(1, 1, 7, false, 4096)));
  ASSERT_TRUE(scheduler_.add(ordered(2, 1, 7, false, 1)));
  ASSERT_TRUE(scheduler_.add(ordered(3, 1, 8, false, 1)));  // reads through another description are free
  Tickets tickets;
  while (const auto next = scheduler_.next(Time{}).batch) {
    ASSERT_EQ(next->tickets.size(), 1U);
    EXPECT_TRUE(next->accesses.empty());
    EXPECT_EQ(next->chunks.at(0).at, -1);
    tickets.push_back(next->tickets[0]);
  }
  EXPECT_THAT(tickets, ::testing::UnorderedElementsAre(1, 3));
  EXPECT_EQ(scheduler_.waiting(), 1U);
}

TEST_P(EveryRequestScheduler, TakesAWriteOfUnknownOffsetToTouchTheWholeFile) {
  ASSERT_TRUE(scheduler_.add(ordered(1, 1, 7, true, 10)));
  ASSERT_TRUE(scheduler_.add(read_at(2, 1, std::int64_t{1} << 40, 1)));
  ASSERT_TRUE(scheduler_.add(read_at(3, 2, 0, 1)));  // of another file
  Tickets tickets;
  while (const auto next = scheduler_.next(Time{}).batch) tickets.push_back(next->tickets[0]);
  EXPECT_THAT(tickets, ::testing::UnorderedElementsAre(1, 3));
}

TEST_P(EveryRequestScheduler, KeepsTheOrderBehindADroppedRequest) {
  ASSERT_TRUE(scheduler_.add(read_at(1, 1, 0, 10)));
  const NextBatch reading = scheduler_.next(Time{});
  ASSERT_TRUE(scheduler_.add(write_at(2, 1, 0, 10)));  // waits for 1
  ASSERT_TRUE(scheduler_.add(write_at(3, 1, 0, 10)));  // waits for 2, and so for 1
  EXPECT_THAT(scheduler_.drop_if([](const IoRequest& request) { return request.ticket == 2; }), ElementsAre(2));
  EXPECT_EQ(scheduler_.waiting(), 1U);
  EXPECT_FALSE(scheduler_.next(Time{}).batch);
  EXPECT_TRUE(scheduler_.add(write_at(2, 2, 0, 10)));  // the ticket is free again
  EXPECT_TRUE(scheduler_.done(reading.batch->number));
  Tickets tickets;
  while (const auto next = scheduler_.next(Time{seconds{1}}).batch) tickets.push_back(next->tickets[0]);
  EXPECT_THAT(tickets, ::testing::UnorderedElementsAre(2, 3));
}

TEST_P(EveryRequestScheduler, DropsAllRequestsOfAChain) {
  for (std::uint64_t ticket = 1; ticket <= 50; ++ticket) ASSERT_TRUE(scheduler_.add(write_at(ticket, 1, 0, 10)));
  EXPECT_EQ(scheduler_.drop_if([](const IoRequest&) { return true; }).size(), 50U);
  EXPECT_EQ(scheduler_.waiting(), 0U);
  EXPECT_FALSE(scheduler_.next(Time{}).batch);
  EXPECT_TRUE(scheduler_.add(write_at(1, 1, 0, 10)));
  EXPECT_TRUE(scheduler_.next(Time{}).batch);
}

TEST_P(EveryRequestScheduler, CountsForEachApplication) {
  auto early = of_application(write_at(1, 1, 0, 10), 5);
  auto late = of_application(write_at(2, 2, 0, 30), 5);
  late.arrival = Time{seconds{1}};
  ASSERT_TRUE(scheduler_.add(early));
  ASSERT_TRUE(scheduler_.add(late));
  while (scheduler_.next(Time{seconds{3}}).batch) continue;
  const ApplicationStatistics& application = scheduler_.statistics().at(5);
  EXPECT_EQ(application.requests, 2U);
  EXPECT_EQ(application.bytes, 40);
  EXPECT_EQ(application.waited, seconds{5});
  EXPECT_EQ(application.most_waited, seconds{3});
  EXPECT_EQ(application.merged, 0U);
  scheduler_.forget(5);
  EXPECT_THAT(scheduler_.statistics(), IsEmpty());
}

TEST_P(EveryRequestScheduler, RefusesWhatItCannotOrderAndLosesNothing) {
  ASSERT_TRUE(scheduler_.add(write_at(1, 1, 0, 10)));
  EXPECT_THAT(scheduler_.add(write_at(1, 2, 0, 10)).error().text, HasSubstr("ticket is in use"));
  EXPECT_THAT(scheduler_.add(write_at(2, 1, -1, 10)).error().text, HasSubstr("-1"));
  EXPECT_THAT(scheduler_.add(write_at(2, 1, 0, -10)).error().text, HasSubstr("-10"));
  EXPECT_FALSE(scheduler_.add(explicit_request(2, 1, true, {{10, 10}, {15, 10}})));
  EXPECT_FALSE(scheduler_.add(explicit_request(2, 1, true, {})));
  EXPECT_FALSE(scheduler_.add(of_application(write_at(2, 1, 0, 1), 1, 1, 0)));
  EXPECT_FALSE(scheduler_.done(77));
  EXPECT_EQ(scheduler_.waiting(), 1U);
  EXPECT_THAT(scheduler_.next(Time{}).batch->tickets, ElementsAre(1));
}

TEST_P(EveryRequestScheduler, TakesOffsetsAtTheEndOfTheRange) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  ASSERT_TRUE(scheduler_.add(write_at(1, 1, most - 1, 1)));
  ASSERT_TRUE(scheduler_.add(ordered(2, 1, 9, true, std::int64_t{1} << 40)));
  EXPECT_FALSE(scheduler_.add(write_at(4, 1, most - 1, 2)));
  EXPECT_FALSE(scheduler_.add(write_at(4, 1, 0, most)));
  EXPECT_FALSE(scheduler_.add(ordered(4, 1, 9, true, most)));
  ASSERT_TRUE(scheduler_.add(read_at(3, 1, 0, 0)));
  std::size_t taken = 0;
  for (Time now{}; now < Time{seconds{9}}; now += seconds{1}) {
    while (const auto next = scheduler_.next(now).batch) {
      taken += next->tickets.size();
      scheduler_.done(next->number);
    }
  }
  EXPECT_EQ(taken, 3U);
}

// A stream of small requests never ends, and would be preferred by some algorithms. The old request still goes first in
// one of `overdue_period` batches, once it has waited long enough.
TEST_P(EveryRequestScheduler, DoesNotStarveALargeRequestBesideAStreamOfSmallOnes) {
  SchedulerSettings settings;
  settings.most_wait = std::chrono::milliseconds{1};
  ASSERT_TRUE(scheduler_.use(GetParam(), settings));
  auto large = of_application(write_at(1, 1, 1 << 30, 1 << 30), 1);
  large.weight = 1e-6;
  ASSERT_TRUE(scheduler_.add(large));
  std::uint64_t ticket = 1;
  std::size_t batches_since_overdue = 0;
  for (Time now{};; now += std::chrono::microseconds{10}) {
    for (int i = 0; i < 2; ++i) {
      ++ticket;
      auto small = of_application(write_at(ticket, ticket % 5, static_cast<std::int64_t>(ticket) * 512, 512), 2);
      small.arrival = now;
      ASSERT_TRUE(scheduler_.add(small));
    }
    const auto next = scheduler_.next(now).batch;
    if (!next) continue;
    scheduler_.done(next->number);
    if (next->tickets[0] == 1) break;
    if (now >= Time{settings.most_wait}) ++batches_since_overdue;
    ASSERT_LT(batches_since_overdue, overdue_period);
  }
}

TEST(RequestScheduler, MergesOnlyEqualFlagsOfOneFileAndDirection) {
  auto direct = write_at(3, 1, 8, 4);
  direct.flags = 1;
  EXPECT_THAT(batches_of("to-agg", {write_at(1, 1, 0, 4), write_at(2, 1, 4, 4), direct, write_at(4, 2, 4, 4),
                                    read_at(5, 1, 12, 4)}),
              ElementsAre(Tickets{1, 2}, Tickets{3}, Tickets{4}, Tickets{5}));
}

TEST(RequestScheduler, DescribesABatchAsChunksAndAccesses) {
  auto scheduler = RequestScheduler::create("hbrr").value();
  ASSERT_TRUE(scheduler.add(write_at(1, 1, 8, 4)));
  ASSERT_TRUE(scheduler.add(explicit_request(2, 1, true, {{0, 4}, {20, 4}})));
  ASSERT_TRUE(scheduler.add(write_at(3, 1, 4, 4)));
  const auto batch = scheduler.next(Time{}).batch;
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->tickets, ElementsAre(2, 3, 1));
  EXPECT_THAT(batch->chunks, ElementsAre(BatchChunk{0, 4, 0, 0}, BatchChunk{4, 4, 1, 0}, BatchChunk{8, 4, 2, 0},
                                         BatchChunk{20, 4, 0, 4}));
  ASSERT_EQ(batch->accesses.size(), 2U);
  EXPECT_EQ(batch->accesses[0].end, 12);
  EXPECT_EQ(batch->accesses[0].count, 3U);
  EXPECT_TRUE(batch->accesses[0].seamless);
  EXPECT_EQ(batch->bytes, 16);
}

TEST(RequestScheduler, ReadsSpanSmallGapsAndWritesDoNot) {
  SchedulerSettings settings;
  settings.most_read_gap = 4;
  const auto reads = batches_of("to-agg", {read_at(1, 1, 0, 4), read_at(2, 1, 8, 4), read_at(3, 1, 17, 4)}, settings);
  EXPECT_THAT(reads, ElementsAre(Tickets{1, 2}, Tickets{3}));
  const auto writes = batches_of("to-agg", {write_at(1, 1, 0, 4), write_at(2, 1, 8, 4)}, settings);
  EXPECT_THAT(writes, ElementsAre(Tickets{1}, Tickets{2}));
}

TEST(RequestScheduler, BoundsTheChunksOfABatch) {
  std::vector<FileExtent> left;
  std::vector<FileExtent> right;
  for (std::int64_t i = 0; i < 40'000; ++i) {
    left.push_back({i * 4, 1});
    right.push_back({i * 4 + 1, 1});
  }
  EXPECT_THAT(batches_of("to-agg", {explicit_request(1, 1, true, left), explicit_request(2, 1, true, right)}),
              ElementsAre(Tickets{1}, Tickets{2}));
  left.resize(10'000);
  EXPECT_THAT(batches_of("to-agg", {explicit_request(1, 1, true, left), explicit_request(2, 1, true, {{1, 1}})}),
              ElementsAre(Tickets{1, 2}));
}

TEST(RequestScheduler, SwitchesWithoutLosingWaitingRequests) {
  auto scheduler = RequestScheduler::create("fifo").value();
  for (std::uint64_t ticket = 1; ticket <= 30; ++ticket) {
    ASSERT_TRUE(scheduler.add(write_at(ticket, ticket % 3, static_cast<std::int64_t>(ticket % 5) * 10, 10)));
  }
  std::size_t taken = 0;
  Time now{};
  for (const std::string_view name : algorithm_names()) {
    ASSERT_TRUE(scheduler.use(name, {}));
    EXPECT_EQ(scheduler.name(), name);
    const auto next = scheduler.next(now += seconds{1}).batch;
    if (!next) continue;
    taken += next->tickets.size();
    scheduler.done(next->number);
  }
  ASSERT_TRUE(scheduler.use("fifo", {}));
  while (const auto next = scheduler.next(now).batch) {
    taken += next->tickets.size();
    scheduler.done(next->number);
  }
  EXPECT_EQ(taken, 30U);
}

TEST(RequestScheduler, KeepsItsAlgorithmIfTheNewOneIsUnknownOrASettingIsWrong) {
  auto scheduler = RequestScheduler::create("sjf").value();
  EXPECT_THAT(scheduler.use("twin", {}).error().text, AllOf(HasSubstr("'twin'"), HasSubstr("did you mean 'twins'")));
  SchedulerSettings settings;
  settings.twins_servers = -1;
  EXPECT_EQ(scheduler.use("twins", settings).error().text, "invalid twins_servers -1: must be at least 0");
  settings.twins_servers = 1 << 30;
  EXPECT_FALSE(scheduler.use("twins", settings));
  EXPECT_EQ(scheduler.name(), "sjf");
  EXPECT_FALSE(RequestScheduler::create("", {}));
}

TEST(RequestScheduler, OrdersManyWritesOfTheSameBytesWithoutAnEdgeForEachPair) {
  auto scheduler = RequestScheduler::create("fifo").value();
  for (std::uint64_t ticket = 1; ticket <= 20'000; ++ticket) ASSERT_TRUE(scheduler.add(write_at(ticket, 1, 0, 10)));
  for (std::uint64_t ticket = 1; ticket <= 20'000; ++ticket) {
    const auto next = scheduler.next(Time{}).batch;
    ASSERT_THAT(next->tickets, ElementsAre(ticket));
    scheduler.done(next->number);
  }
}

}  // namespace
}  // namespace hocket::request_scheduler
