#include "model/io_history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/testing.hpp"

namespace hocket::model {
namespace {

using testing::at;

PhaseRecord phase(double start, double io, double wait = 0, double cpu = 0, double comm = 0) {
  return {at(start), at(start + wait + io), from_s(io), from_s(wait), from_s(cpu), from_s(comm), 1000};
}

TEST(IoHistory, KnowsNoPeriodBeforeTheSecondPhase) {
  IoHistory history;
  EXPECT_EQ(history.phases(), 0);
  EXPECT_EQ(history.last(), nullptr);
  EXPECT_TRUE(history.predict(at(1), 3).empty());
  history.add(phase(10, 2));
  EXPECT_EQ(history.period().mean, Duration{});
  EXPECT_EQ(history.io_ratio(), 0);
  EXPECT_EQ(history.duration().mean, from_s(2));
  EXPECT_TRUE(history.predict(at(20), 3).empty());
}

TEST(IoHistory, GivesPeriodDurationAndRatioOfARegularApplication) {
  IoHistory history;
  for (int i = 0; i < 10; ++i) history.add(phase(100 + 20 * i, 5));
  EXPECT_EQ(history.period().mean, from_s(20));
  EXPECT_EQ(history.period().spread, Duration{});
  EXPECT_EQ(history.duration().mean, from_s(5));
  EXPECT_DOUBLE_EQ(history.io_ratio(), 0.25);

  const auto next = history.predict(at(286), 3);
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next[0].start, at(300));
  EXPECT_EQ(next[1].start, at(320));
  EXPECT_EQ(next[2].start, at(340));
  EXPECT_EQ(next[0].duration, from_s(5));
  EXPECT_EQ(next[2].uncertainty, Duration{});
}

TEST(IoHistory, BreaksThePeriodUp) {
  IoHistory history;
  history.add(phase(0, 2, 1, 99, 99));  // precedes the first period
  history.add(phase(20, 2, 1, 12, 4));  // 1 s of the 20 belongs to none of the terms
  history.add(phase(40, 9, 9, 12, 4));  // its own I/O belongs to the next period
  const PeriodParts parts = history.period_parts();
  EXPECT_EQ(parts.cpu, from_s(12));
  EXPECT_EQ(parts.comm, from_s(4));
  EXPECT_EQ(parts.io, from_s(2));
  EXPECT_EQ(parts.wait, from_s(1));
  EXPECT_EQ(parts.other, from_s(1));
}

TEST(IoHistory, SpreadIsTheStandardDeviation) {
  IoHistory history;
  for (const double start : {0.0, 9.0, 20.0, 29.0, 40.0}) history.add(phase(start, 1));  // periods 9 11 9 11
  EXPECT_EQ(history.period().mean, from_s(10));
  EXPECT_NEAR(to_s(history.period().spread), std::sqrt(4.0 / 3.0), 1e-6);
}

TEST(IoHistory, UncertaintyGrowsWithTheDistanceAndTheSpread) {
  IoHistory calm;
  IoHistory wild;
  for (int i = 0; i < 20; ++i) {
    const double off = static_cast<double>(i * i % 7) / 6;  // no cycle of up to six
    calm.add(phase(10 * i + 0.1 * off, 1));
    wild.add(phase(10 * i + 3 * off, 1));
  }
  const auto of_calm = calm.predict(at(192), 4);
  const auto of_wild = wild.predict(at(195), 4);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GT(of_calm[i].uncertainty, Duration{});
    EXPECT_GT(of_wild[i].uncertainty, of_calm[i].uncertainty);
    if (i > 0) {
      EXPECT_GT(of_wild[i].uncertainty, of_wild[i - 1].uncertainty);
    }
  }
}

TEST(IoHistory, DoesNotTrustASinglePeriod) {
  IoHistory history;
  history.add(phase(0, 1));
  history.add(phase(10, 1));
  const auto next = history.predict(at(12), 1);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].start, at(20));
  EXPECT_GE(next[0].uncertainty, from_s(5));
}

TEST(IoHistory, WaitsOnePeriodForAMissedPhaseThenGoesOnByWholePeriods) {
  IoHistory history;
  for (int i = 0; i < 5; ++i) history.add(phase(10 * i, 1));  // the last at 40, the next expected at 50
  EXPECT_EQ(history.predict(at(49), 1)[0].start, at(50));
  EXPECT_EQ(history.predict(at(59), 1)[0].start, at(50));
  EXPECT_EQ(history.predict(at(60), 1)[0].start, at(50));
  EXPECT_EQ(history.predict(at(61), 1)[0].start, at(60));
  for (double now = 40; now < 10000; now += 7.3) {
    const Time start = history.predict(at(now), 1)[0].start;
    EXPECT_GE(start, at(now - 10)) << now;
    EXPECT_LE(start, std::max(at(50), at(now + 10))) << now;
    EXPECT_EQ((start - at(0)) % from_s(10), Duration{}) << now;
  }
}

TEST(IoHistory, KeepsTheLastPhasesOnly) {
  IoHistory history;
  for (int i = 0; i < 40; ++i) history.add(phase(5 * i, 1));
  for (int i = 0; i < 32; ++i) history.add(phase(200 + 10 * i, 2));
  EXPECT_EQ(history.phases(), 72);
  EXPECT_EQ(history.period().mean, from_s(10));
  EXPECT_EQ(history.period().spread, Duration{});
  EXPECT_EQ(history.duration().mean, from_s(2));
  EXPECT_EQ(history.last()->start, at(510));
}

TEST(IoHistory, JoinsWhatMembersReportOfOnePhase) {
  IoHistory history;
  history.add(phase(0, 1));
  history.add(phase(10, 2));
  history.add(phase(9.5, 1));  // another member's view of the same phase
  history.add(phase(3, 1));    // too late
  EXPECT_EQ(history.phases(), 2);
  EXPECT_EQ(history.last()->start, at(9.5));
  EXPECT_EQ(history.last()->end, at(12));
  EXPECT_EQ(history.last()->io, from_s(2));
  EXPECT_EQ(history.last()->bytes, 2000);
  EXPECT_EQ(history.period().mean, from_s(9.5));
}

PhaseRecord sized(double start, double io, std::int64_t iteration, std::int64_t processes, bool resized = false) {
  PhaseRecord record = phase(start, io);
  record.iteration = iteration;
  record.processes = processes;
  record.resized = resized;
  return record;
}

TEST(IoHistory, CountsWholePeriodsAtEachSize) {
  IoHistory history;
  history.add(sized(0, 2, 100, 64));
  history.add(sized(20, 2, 200, 64));
  history.add(sized(40, 2, 300, 64));
  EXPECT_EQ(history.present().periods, 2u);
  EXPECT_EQ(history.present().iterations, 100);
  EXPECT_EQ(history.present().computing.mean, from_s(18));

  history.add(sized(56, 2, 400, 64, true));  // grown and shrunk again in between
  EXPECT_EQ(history.period().mean, from_s(20)) << "the old periods are still valid";
  EXPECT_EQ(history.present().periods, 2u);

  history.add(sized(74, 1, 500, 80, true));  // grown for good in between
  EXPECT_EQ(history.period().mean, Duration{}) << "nothing whole at 80 yet";
  EXPECT_EQ(history.duration().mean, from_s(1));
  EXPECT_EQ(history.latest().processes, 64);
  EXPECT_EQ(history.latest().period.mean, from_s(20));

  history.add(sized(86, 1, 600, 80));
  EXPECT_EQ(history.period().mean, from_s(12));
  EXPECT_EQ(history.latest().processes, 80);
  EXPECT_EQ(history.at_size(64).periods, 2u);
  EXPECT_EQ(history.at_size(99).periods, 0u);
}

TEST(IoHistory, PredictsFromTheEndOfThePhaseSoThatItsWaitCounts) {
  IoHistory history;
  for (int i = 0; i < 6; ++i) history.add(phase(20 * i, 2));
  history.add(phase(120, 2, 5));  // waited, so the next one is as much later
  const auto next = history.predict(at(128), 2);
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next[0].start, at(145));
  EXPECT_EQ(next[1].start, at(165));
}

TEST(IoHistory, AMishapDoesNotSpoilTheMean) {
  IoHistory history;
  double start = 0;
  for (int i = 0; i < 12; ++i) {
    history.add(phase(start, i == 5 ? 30 : 2));
    start += i == 5 || i == 8 ? 200 : 20;  // stopped for a while; a phase left out
  }
  EXPECT_EQ(history.period().mean, from_s(20));
  EXPECT_EQ(history.duration().mean, from_s(2));
  EXPECT_EQ(history.predict(history.last()->end, 1)[0].uncertainty, Duration{});
}

TEST(IoHistory, FollowsAnApplicationThatChanges) {
  IoHistory history;
  double start = 0;
  for (int i = 0; i < 32; ++i, start += 20) history.add(phase(start, 2));
  start += 20;
  for (int i = 0; i < 40; ++i, start += 40) {
    history.add(phase(start, 6));
    if (i >= 3) {
      EXPECT_EQ(history.period().mean, from_s(40)) << i;
      EXPECT_EQ(history.duration().mean, from_s(6)) << i;
    }
  }
}

// Neither kind is an accident, and they do not alternate.
TEST(IoHistory, TakesTwoKindsOfPeriodsForWhatTheyAre) {
  IoHistory history;
  std::mt19937_64 random{3};
  double start = 0;
  for (int i = 0; i < 31; ++i, start += random() % 2 ? 10 : 30) history.add(phase(start, 2));
  EXPECT_GT(history.period().spread, from_s(9));
}

TEST(IoHistory, IterationsOfAPeriodBearAPhaseThatIsLeftOut) {
  IoHistory history;
  double start = 0;
  std::int64_t iteration = 0;
  for (int i = 0; i < 30; ++i) {
    start += i % 10 == 5 ? 40 : 20;
    iteration += i % 10 == 5 ? 200 : 100;
    PhaseRecord record = phase(start, 2);
    record.iteration = iteration;
    record.processes = 64;
    history.add(record);
  }
  EXPECT_EQ(history.present().iterations, 100);
}

// The two standard deviations hold their promise if periods have a normal distribution.
TEST(IoHistory, PredictsWithinItsUncertainty) {
  std::mt19937_64 random{20260101};
  std::normal_distribution<double> jitter{0, 1};
  for (const int ahead : {1, 3, 8}) {
    int within = 0;
    constexpr int runs = 2000;
    for (int run = 0; run < runs; ++run) {
      IoHistory history;
      double start = 100;
      for (int i = 0; i < 32; ++i, start += 30 + jitter(random)) history.add(phase(start, 2));
      for (int i = 1; i < ahead; ++i) start += 30 + jitter(random);
      const auto predicted = history.predict(history.last()->end, static_cast<std::size_t>(ahead)).back();
      const Duration error = at(start) - predicted.start;
      within += std::max(error, -error) <= predicted.uncertainty;
    }
    EXPECT_GT(within, runs * 92 / 100) << ahead << " periods ahead";
    EXPECT_LT(within, runs * 98 / 100) << ahead << " periods ahead";
  }
}

// Any input is handled: no undefined behaviour (the sanitizers check it), no negative period, no prediction far in
// the past.
TEST(IoHistory, BearsAnyTimes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random{seed};
    IoHistory history;
    const std::int64_t largest = std::int64_t{1} << (10 + random() % 52);
    std::int64_t now = 1;
    for (int i = 0; i < 100; ++i) {
      const std::int64_t end = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(largest));
      const std::int64_t start = end - static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end + 1));
      now = std::max(now, end);
      history.add({time_from_ns(start), time_from_ns(end), Duration{end - start}, {}, {}, {}, INT64_MAX});
      EXPECT_GE(history.period().mean, Duration{});
      EXPECT_GE(history.io_ratio(), 0);
      EXPECT_LE(history.io_ratio(), 1);
      for (const auto& next : history.predict(time_from_ns(now), 3)) {
        EXPECT_GE(next.start, time_from_ns(now) - history.period().mean);
        EXPECT_GE(next.uncertainty, Duration{});
      }
    }
  }
}

}  // namespace
}  // namespace hocket::model
