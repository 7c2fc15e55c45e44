#include "session/phases.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hocket::runtime {
namespace {

using event::IoPhase;

constexpr Duration gap{100};

Operation written(Time end, Duration io, std::int64_t bytes) {
  Operation operation;
  operation.end = end;
  operation.io = io;
  operation.bytes_written = bytes;
  operation.target = "t";
  return operation;
}

TEST(PhaseTracker, OperationsWithinTheGapAreOnePhase) {
  PhaseTracker phases(gap, time_from_ns(0));
  EXPECT_FALSE(phases.begin(time_from_ns(1000)));
  EXPECT_TRUE(phases.began());
  phases.end(written(time_from_ns(1050), Duration{50}, 10), {Duration{50}, Duration{300}, {}});
  EXPECT_FALSE(phases.begin(time_from_ns(1150)));  // exactly the gap is not over yet
  EXPECT_FALSE(phases.began());
  phases.end(written(time_from_ns(1200), Duration{50}, 20), {Duration{100}, Duration{310}, {}});
  EXPECT_FALSE(phases.due(time_from_ns(1300)));
  const auto phase = phases.due(time_from_ns(1301));
  ASSERT_TRUE(phase);
  EXPECT_EQ(phase->index, 0);
  EXPECT_EQ(to_ns(phase->start), 1000);
  EXPECT_EQ(to_ns(phase->end), 1200);
  EXPECT_EQ(phase->operations, 2);
  EXPECT_EQ(phase->bytes_written, 30);
  EXPECT_EQ(phase->io, Duration{100});
  EXPECT_EQ(phase->comm, Duration{310});
  EXPECT_EQ(phase->cpu, Duration{1200 - 100 - 310});
  EXPECT_EQ(phase->target, "t");
  EXPECT_FALSE(phases.due(time_from_ns(99999)));
}

TEST(PhaseTracker, SaysWhatAllProcessesSpentOfTheLargestFile) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.told({9, Duration{1}, Duration{1}, Duration{1}, Duration{1}});  // no phase is open
  phases.begin(time_from_ns(0));
  SpentTotals all;
  for (const int i : {1, 3, 2}) all.add({Duration{10 * i}, Duration{40 - i}});
  phases.told(all);
  phases.told({2, Duration{1}, Duration{1}, Duration{1}, Duration{1}});
  phases.end(written(time_from_ns(10), Duration{10}, 1), {});
  const auto phase = phases.finish();
  ASSERT_TRUE(phase);
  EXPECT_EQ(phase->told_processes, 3);
  EXPECT_EQ(phase->all_cpu, Duration{60});
  EXPECT_EQ(phase->all_comm, Duration{114});
  EXPECT_EQ(phase->cpu_most, Duration{30});
  EXPECT_EQ(phase->comm_most, Duration{39});
}

TEST(PhaseTracker, ALaterOperationEndsThePhaseBefore) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.begin(time_from_ns(0));
  phases.end(written(time_from_ns(10), Duration{10}, 1), {Duration{10}, {}, {}});
  const auto phase = phases.begin(time_from_ns(111));
  ASSERT_TRUE(phase);
  EXPECT_TRUE(phases.began());
  EXPECT_EQ(phase->operations, 1);
}

TEST(PhaseTracker, APhaseLastsWhileAnOperationRuns) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.begin(time_from_ns(0));
  EXPECT_FALSE(phases.due(time_from_ns(1'000'000)));
  EXPECT_FALSE(phases.finish());
  phases.end(written(time_from_ns(1'000'000), Duration{1'000'000}, 1), {});
  EXPECT_TRUE(phases.finish());
}

TEST(PhaseTracker, WaitingCountsAsNeitherComputingNorIo) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.begin(time_from_ns(100));
  Operation operation = written(time_from_ns(200), Duration{30}, 1);
  operation.wait = Duration{70};
  phases.end(operation, {Duration{30}, Duration{}, Duration{70}});
  const auto phase = phases.finish();
  ASSERT_TRUE(phase);
  EXPECT_EQ(phase->wait, Duration{70});
  EXPECT_EQ(phase->io, Duration{30});
  EXPECT_EQ(phase->cpu, Duration{100});
}

TEST(PhaseTracker, APhaseTellsWhenItWasBusy) {
  constexpr std::int64_t ms = 1'000'000;
  PhaseTracker phases(Duration{100 * ms}, time_from_ns(0));
  phases.begin(time_from_ns(10 * ms));
  Operation operation = written(time_from_ns(40 * ms), Duration{20 * ms}, 1);
  operation.wait = Duration{10 * ms};
  phases.end(operation, {});
  phases.begin(time_from_ns(50 * ms));
  phases.end(written(time_from_ns(55 * ms), Duration{5 * ms}, 1), {});
  phases.extend(time_from_ns(70 * ms), Duration{2 * ms}, {});
  const auto first = phases.finish();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->io_intervals, "10000000:20000000 40000000:5000000 58000000:2000000");
  EXPECT_EQ(first->wait_intervals, "0:10000000");
  phases.begin(time_from_ns(300 * ms));
  phases.end(written(time_from_ns(301 * ms), Duration{ms}, 1), {});
  const auto second = phases.finish();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->io_intervals, "0:1000000") << "of this phase alone";
  EXPECT_EQ(second->wait_intervals, "");
}

TEST(PhaseTracker, APhaseIsOfTheLastControlPointBeforeItsEnd) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.begin(time_from_ns(0));
  phases.end(written(time_from_ns(10), Duration{10}, 1), {});
  const auto before_any = phases.finish();
  ASSERT_TRUE(before_any);
  EXPECT_EQ(before_any->iteration, -1);
  EXPECT_EQ(before_any->processes, 0);
  EXPECT_EQ(before_any->control_every, 0);

  phases.control_point({98, 4, 2});
  phases.begin(time_from_ns(1000));
  phases.control_point({100, 4, 2});  // between two operations of one phase
  phases.end(written(time_from_ns(1010), Duration{10}, 1), {});
  phases.control_point({102, 8, 2});  // after its end, before it is known to be over
  const auto phase = phases.due(time_from_ns(1200));
  ASSERT_TRUE(phase);
  EXPECT_EQ(phase->iteration, 100);
  EXPECT_EQ(phase->processes, 4);
  EXPECT_EQ(phase->control_every, 2);
}

TEST(PhaseTracker, AFileTouchedWithinTheGapBelongsToThePhase) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.begin(time_from_ns(0));
  phases.end(written(time_from_ns(10), Duration{10}, 1), {Duration{10}, {}, {}});
  EXPECT_FALSE(phases.extend(time_from_ns(130), Duration{20}, {Duration{30}, {}, {}}));  // begins exactly at the gap
  const auto phase = phases.finish();
  ASSERT_TRUE(phase);
  EXPECT_EQ(to_ns(phase->end), 130);
  EXPECT_EQ(phase->io, Duration{30});
  EXPECT_EQ(phase->cpu, Duration{100});
}

TEST(PhaseTracker, AFileTouchedAfterComputingDoesNotStretchThePhase) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.begin(time_from_ns(0));
  phases.end(written(time_from_ns(10), Duration{10}, 1), {Duration{10}, {}, {}});
  const auto phase = phases.extend(time_from_ns(2520), Duration{20}, {Duration{30}, {}, {}});
  ASSERT_TRUE(phase);
  EXPECT_EQ(to_ns(phase->end), 10);
  EXPECT_EQ(phase->io, Duration{10});
  EXPECT_EQ(phase->cpu, Duration{});
  EXPECT_FALSE(phases.finish());

  // The time for the file counts as I/O before the next phase, not as computing.
  phases.begin(time_from_ns(2520));
  EXPECT_TRUE(phases.began());
  phases.end(written(time_from_ns(2530), Duration{10}, 1), {Duration{40}, {}, {}});
  const auto next = phases.finish();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->io, Duration{10});
  EXPECT_EQ(next->cpu, Duration{2530 - 10 - 30});
}

TEST(PhaseTracker, AFileTouchedWhileAnOperationRunsBelongsToThePhase) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.begin(time_from_ns(0));  // a nonblocking operation
  EXPECT_FALSE(phases.extend(time_from_ns(2520), Duration{20}, {Duration{20}, {}, {}}));
  phases.end(written(time_from_ns(2530), Duration{10}, 1), {Duration{30}, {}, {}});
  const auto phase = phases.finish();
  ASSERT_TRUE(phase);
  EXPECT_EQ(to_ns(phase->end), 2530);
  EXPECT_EQ(phase->io, Duration{30});
}

// Compares with a model that keeps every operation and groups them at the end.
TEST(PhaseTracker, GroupsAsAListOfOperationsDoes) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    PhaseTracker phases(gap, time_from_ns(0));
    std::vector<IoPhase> reported;
    std::vector<std::pair<std::int64_t, std::int64_t>> operations;
    TimeSums sums;
    std::int64_t now = 0;
    const auto keep = [&](std::optional<IoPhase> phase) {
      if (phase) reported.push_back(*phase);
    };
    for (int i = 0; i < 50; ++i) {
      now += 1 + static_cast<std::int64_t>(random() % 250);
      if (random() % 3 == 0) keep(phases.due(time_from_ns(now)));
      const std::int64_t length = static_cast<std::int64_t>(random() % 200);
      keep(phases.begin(time_from_ns(now)));
      sums.io += Duration{length};
      phases.end(written(time_from_ns(now + length), Duration{length}, 1), sums);
      operations.emplace_back(now, now + length);
      now += length;
    }
    keep(phases.finish());

    std::vector<IoPhase> expected;
    for (const auto& [start, end] : operations) {
      if (expected.empty() || start - to_ns(expected.back().end) > gap.count()) {
        expected.emplace_back();
        expected.back().start = time_from_ns(start);
      }
      expected.back().end = time_from_ns(end);
      expected.back().io += Duration{end - start};
      expected.back().operations += 1;
    }
    ASSERT_EQ(reported.size(), expected.size()) << "seed " << seed;
    std::int64_t previous_end = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(reported[i].index, static_cast<std::int64_t>(i));
      EXPECT_EQ(reported[i].start, expected[i].start) << "seed " << seed;
      EXPECT_EQ(reported[i].end, expected[i].end) << "seed " << seed;
      EXPECT_EQ(reported[i].operations, expected[i].operations) << "seed " << seed;
      EXPECT_EQ(reported[i].cpu, Duration{to_ns(expected[i].end) - previous_end} - expected[i].io) << "seed " << seed;
      previous_end = to_ns(expected[i].end);
    }
  }
}

// Makes a phase at `at`, at whose start `operations` were counted (nothing: they could not be read).
IoPhase counted_phase(PhaseTracker& phases, std::int64_t at, std::optional<double> operations) {
  phases.begin(time_from_ns(at));
  if (operations) phases.counted(*operations);
  phases.end(written(time_from_ns(at + 10), Duration{10}, 1), {});
  return phases.finish().value_or(IoPhase{});
}

TEST(PhaseTracker, TellsWhatWasCountedSinceThePhaseBefore) {
  PhaseTracker phases(gap, time_from_ns(0));
  EXPECT_EQ(counted_phase(phases, 1000, 5e9).flop, 0);  // the operations before it are unknown
  EXPECT_EQ(counted_phase(phases, 2000, 8e9).flop, 3e9);
  EXPECT_EQ(counted_phase(phases, 3000, std::nullopt).flop, 0);
  EXPECT_EQ(counted_phase(phases, 4000, 20e9).flop, 0);  // the difference covers two periods
  EXPECT_EQ(counted_phase(phases, 5000, 21e9).flop, 1e9);
  EXPECT_EQ(counted_phase(phases, 6000, 20e9).flop, 0);  // never negative
}

TEST(PhaseTracker, ComparesNoCountsOfOtherProcesses) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.control_point({10, 4, 1, 0});
  counted_phase(phases, 1000, 5e9);
  phases.control_point({20, 4, 1, 1});  // as many processes, but other ones
  EXPECT_EQ(counted_phase(phases, 2000, 8e9).flop, 0);
  phases.control_point({30, 4, 1, 1});
  EXPECT_EQ(counted_phase(phases, 3000, 12e9).flop, 4e9);
}

TEST(PhaseTracker, CountsNothingBetweenPhases) {
  PhaseTracker phases(gap, time_from_ns(0));
  phases.counted(1e9);
  EXPECT_EQ(counted_phase(phases, 1000, 2e9).flop, 0);
}

}  // namespace
}  // namespace hocket::runtime
