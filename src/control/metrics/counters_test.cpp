#include "metrics/counters.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "event/random_event.hpp"

namespace hocket::metrics {
namespace {

constexpr MemberId member{7};

event::Event at(double s, event::Body body, MemberId from = member) {
  return {time_from_ns(static_cast<std::int64_t>(s * 1e9)), {"node", "a", from}, std::move(body)};
}

event::GrantIo grant(std::uint64_t request, double waited_s = 0) { return {RequestId{request}, from_s(waited_s), "t"}; }

std::int64_t grants(const EventCounters& counters) {
  std::int64_t sum = 0;
  for (const auto& [target, counted] : counters.counts().targets) sum += counted.grants;
  return sum;
}

TEST(EventCounters, CountAGrantOnceUntilItsEnd) {
  EventCounters counters;
  counters.count_command(member, grant(1, 2));
  counters.count_command(member, grant(1));  // another bandwidth share
  EXPECT_EQ(grants(counters), 1);
  counters.count_command(MemberId{8}, grant(1));  // the number is the member's own
  EXPECT_EQ(grants(counters), 2);
  event::PausedIo paused;
  paused.request = RequestId{1};
  counters.count(at(1, paused));
  counters.count_command(member, grant(1, 3));
  EXPECT_EQ(grants(counters), 3) << "an access that resumes has a new grant";
  EXPECT_EQ(counters.counts().grant_waits.sum_s(), 5);
  counters.count(at(2, event::Lost{"gone"}));
  counters.count_command(member, grant(1));
  EXPECT_EQ(grants(counters), 4);
}

TEST(EventCounters, KnowTheEndOfAGrantByEachOfItsNames) {
  EventCounters counters;
  counters.count_command(member, grant(1));
  counters.count_command(member, event::LeaseExpired{RequestId{1}, "a", "t"});
  counters.count_command(member, grant(1));
  event::FinishIo finish;
  finish.request = RequestId{1};
  counters.count(at(1, finish));
  counters.count_command(member, grant(1));
  counters.count(at(1, event::Bye{}));
  counters.count_command(member, grant(1));
  EXPECT_EQ(grants(counters), 4);
  EXPECT_EQ(counters.counts().lease_ends, 1);
}

TEST(EventCounters, CountNoMoreOfAPhaseThanItsLength) {
  EventCounters counters;
  event::IoPhase phase;
  phase.target = "t";
  phase.start = time_from_ns(1'000'000'000);
  phase.end = time_from_ns(3'000'000'000);
  phase.io = from_s(1.5);
  phase.wait = from_s(0.5);
  counters.count(at(3, phase));
  phase.io = from_s(1e9);
  phase.wait = from_s(1e9);
  counters.count(at(3, phase));
  phase.io = from_s(-1);
  phase.end = time_from_ns(std::numeric_limits<std::int64_t>::max());
  counters.count(at(3, phase));
  const TargetCounts counted = counters.counts().targets.begin()->second;
  EXPECT_DOUBLE_EQ(counted.io_s, 1.5 + 2);
  EXPECT_DOUBLE_EQ(counted.wait_s, 0.5 + 0 + 2);
}

TEST(EventCounters, SumUpEstimatesByTheirSign) {
  EventCounters counters;
  event::Decision decision;
  decision.action = "estimate";
  for (const double late_s : {-3.0, 1.0, -0.5, std::numeric_limits<double>::quiet_NaN()}) {
    decision.reason = event::SlowdownEstimate{late_s, 10, 0, 0};
    counters.count_command({}, decision);
  }
  EXPECT_EQ(counters.counts().estimates, 3);
  EXPECT_EQ(counters.counts().saved_s, 3.5);
  EXPECT_EQ(counters.counts().lost_s, 1);
}

TEST(EventCounters, CountOutcomesOfKnownQuantitiesOnly) {
  EventCounters counters;
  event::Outcome outcome;
  outcome.quantity = event::quantity::period;
  outcome.met = true;
  counters.count_command({}, outcome);
  outcome.quantity = "of a later version";
  counters.count_command({}, outcome);
  ASSERT_EQ(counters.counts().outcomes.size(), 1U);
  EXPECT_EQ(counters.counts().outcomes.begin()->first, std::pair(event::quantity::period, true));
}

TEST(EventCounters, CountTypesOfToolsAsOne) {
  EventCounters counters;
  counters.count(at(1, event::User{"MY_EVENT", {}}));
  counters.count(at(1, event::User{"ANOTHER", {}}));
  EXPECT_EQ(counters.counts().events.size(), 1U);
  EXPECT_EQ(counters.counts().events.at("USER"), 2);
}

TEST(ByLabel, CountsNamesBeyondTheBoundsTogether) {
  ByLabel<int> values;
  for (int i = 0; i < 1000; ++i) ++values["t" + std::to_string(i)];
  for (int i = 0; i < 1000; ++i) ++values["t" + std::to_string(i)];
  ++values[std::string(ByLabel<int>::longest_bytes + 1, 'x')];
  EXPECT_EQ(values.size(), ByLabel<int>::most + 1);
  const int sum =
      std::accumulate(values.begin(), values.end(), 0, [](int n, const auto& one) { return n + one.second; });
  EXPECT_EQ(sum, 2001);
  EXPECT_EQ(values[others], 2 * (1000 - static_cast<int>(ByLabel<int>::most)) + 1);
}

TEST(ByLabel, GivesTheSameNamesInACopyThatBeginsWithTheOthers) {
  ByLabel<int> values;
  ++values[others];
  for (std::size_t i = 0; i < 2 * ByLabel<int>::most; ++i) ++values["t" + std::to_string(i)];
  ByLabel<int> copy;
  for (const auto& [name, value] : values) copy[name] = value;
  EXPECT_EQ(copy.size(), ByLabel<int>::most + 1);
  EXPECT_EQ(copy[others], 1 + static_cast<int>(ByLabel<int>::most));
}

TEST(ByLabel, ShowsControlCharactersAndEachNameOnce) {
  ByLabel<int> values;
  ++values["a\x1b"];
  ++values["a\x1b"];
  ++values["a\\x1b"];  // the printable form of the first: one series, since the page may show each only once
  EXPECT_EQ(values.size(), 1U);
  EXPECT_EQ(values.begin()->first, "a\\x1b");
  EXPECT_EQ(values.begin()->second, 3);
}

TEST(CountersProperty, TheirSizeIsBoundedWhateverComes) {
  EventCounters counters;
  event::RandomEvents random{5};
  for (int i = 0; i < 20'000; ++i) {
    const event::Event event = random.next();
    counters.count(event);
    counters.count_command(event.origin.member, event.body);
  }
  const Counts& counts = counters.counts();
  EXPECT_LE(counts.targets.size(), ByLabel<TargetCounts>::most + 1);
  EXPECT_LE(counts.decisions.size(), ByLabel<std::int64_t>::most + 1);
  EXPECT_LE(counts.events.size(), std::variant_size_v<event::AnyEvent>);
  for (const auto& [target, counted] : counts.targets) {
    EXPECT_GE(counted.io_s, 0) << target;
    EXPECT_GE(counted.wait_s, 0) << target;
  }
}

}  // namespace
}  // namespace hocket::metrics
