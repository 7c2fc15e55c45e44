// Tests policy `cost` with applications whose accesses it has seen.
#include <gtest/gtest.h>

#include <algorithm>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::event_of;
using testing::Lines;

constexpr std::int64_t megabyte = 1'000'000;
constexpr const char* writes = "MPI_File_write_at_all";

// Two applications of one process each on a target of 100 MB/s that they share evenly.
class CostTest : public testing::Script {
 protected:
  CostTest()
      : Script(CoordinatorSettings{{&policy::cost}, seconds{1000}, milliseconds{20}, seconds{1000}, seconds{100}}) {
    for (const std::uint64_t member : {1, 2}) hello(member, "job" + std::to_string(member), "app", 1);
  }
  // DECISIONs and the like, which go to no member, are not looked at.
  std::optional<std::string> line_of(const Command& command) override {
    if (!command.to) return std::nullopt;
    return testing::describe(command);
  }
  Lines start(std::int64_t ms, std::uint64_t member, std::int64_t bytes, const char* routine = writes) {
    return Script::start(ms, member, ++requests[member], "disk", bytes, routine);
  }
  Lines finish(std::int64_t ms, std::uint64_t member, std::int64_t bytes) {
    event::FinishIo end;
    end.request = RequestId{requests[member]};
    end.bytes = bytes;
    return at(ms, member, end);
  }
  void end_phase(std::int64_t ms, std::uint64_t member) {
    event::IoPhase phase;
    phase.index = ++phases[member];
    phase.start = Time{} + milliseconds{ms - 10};
    phase.end = Time{} + milliseconds{ms};
    phase.target = "disk";
    at(ms, member, phase);
  }
  // Each application has three accesses alone and one beside the other: 100 MB take 1 s alone and 2 s together.
  std::int64_t learn() {
    std::int64_t ms = 1000;
    for (int round = 0; round < 3; ++round) {
      for (const std::uint64_t member : {1, 2}) {
        start(ms, member, 100 * megabyte);
        finish(ms + 1000, member, 100 * megabyte);
        end_phase(ms + 1100, member);
        ms += 10'000;
      }
    }
    start(ms, 1, 100 * megabyte);
    start(ms, 2, 100 * megabyte);
    finish(ms + 2000, 1, 100 * megabyte);
    finish(ms + 2000, 2, 100 * megabyte);
    end_phase(ms + 2100, 1);
    end_phase(ms + 2100, 2);
    return ms + 20'000;
  }
  static bool is_granted(const Lines& lines, std::uint64_t member) {
    const std::string grant = std::to_string(member) + " GRANT_IO";
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.starts_with(grant); });
  }

  std::uint64_t requests[3]{};
  std::int64_t phases[3]{-1, -1, -1};
};

TEST_F(CostTest, WhatIsNotKnownGoesOnAtOnce) {
  EXPECT_TRUE(is_granted(start(1000, 1, 100 * megabyte), 1));
  EXPECT_TRUE(is_granted(start(1100, 2, 100 * megabyte), 2));
}

TEST_F(CostTest, TheSecondOfTwoLikeOnesWaits) {
  const std::int64_t ms = learn();
  EXPECT_TRUE(is_granted(start(ms, 1, 100 * megabyte), 1));
  EXPECT_FALSE(is_granted(start(ms + 200, 2, 100 * megabyte), 2));
  EXPECT_TRUE(is_granted(finish(ms + 1000, 1, 100 * megabyte), 2) || is_granted(tick(ms + 1100), 2));
}

TEST_F(CostTest, NobodyWaitsLongerThanTheHolderShouldTake) {
  const std::int64_t ms = learn();
  start(ms, 1, 100 * megabyte);
  EXPECT_FALSE(is_granted(start(ms + 200, 2, 100 * megabyte), 2));
  EXPECT_FALSE(is_granted(tick(ms + 900), 2));
  Lines lines;
  for (std::int64_t later = 1000; later <= 1400; later += 100) {
    const Lines more = tick(ms + later);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  EXPECT_TRUE(is_granted(lines, 2)) << "the holder is late";
}

TEST_F(CostTest, ReadingBackFromTheCacheNeitherWaitsNorIsWaitedFor) {
  std::int64_t ms = learn();
  for (int round = 0; round < 3; ++round) {
    start(ms, 2, 100 * megabyte, "pread");
    finish(ms + 20, 2, 100 * megabyte);
    end_phase(ms + 120, 2);
    ms += 10'000;
  }
  start(ms, 1, 100 * megabyte);
  EXPECT_TRUE(is_granted(start(ms + 100, 2, 100 * megabyte, "pread"), 2));
  finish(ms + 120, 2, 100 * megabyte);
}

// An access of 3 ms at the end of a phase, beside a program that is late: it has waited for the other's whole write.
TEST_F(CostTest, AHeaderDoesNotWait) {
  std::int64_t ms = learn();
  for (int round = 0; round < 4; ++round) {
    start(ms, 2, 100 * megabyte);
    finish(ms + 1000, 2, 100 * megabyte);
    start(ms + 1001, 2, 300, "MPI_File_write_at");
    finish(ms + 1004, 2, 300);
    end_phase(ms + 1100, 2);
    ms += 10'000;
  }
  start(ms, 2, 100 * megabyte);
  EXPECT_FALSE(is_granted(start(ms + 100, 1, 100 * megabyte), 1));
  EXPECT_TRUE(is_granted(tick(ms + 1000), 1) || is_granted(finish(ms + 1001, 2, 100 * megabyte), 1) ||
              is_granted(tick(ms + 1050), 1));
  EXPECT_TRUE(is_granted(start(ms + 1060, 2, 300, "MPI_File_write_at"), 2));
}

TEST_F(CostTest, ASmallOneDoesNotWaitForALargeOneThatGoesOn) {
  const std::int64_t ms = learn();
  start(ms, 1, 100 * megabyte);
  EXPECT_TRUE(is_granted(start(ms + 100, 2, 10 * megabyte), 2)) << "uncoordinated it would end long before the other";
}

TEST_F(CostTest, ItTellsWhatCameOfAnApplication) {
  learn();
  const auto& commands = coordinator.handle(event_of(100'000, 1, event::Bye{}));
  const auto is_estimate = [](const Command& command) {
    const auto* decision = std::get_if<event::Decision>(&command.body);
    return decision != nullptr && decision->action == "estimate";
  };
  EXPECT_EQ(std::count_if(commands.begin(), commands.end(), is_estimate), 1);
}

}  // namespace
}  // namespace hocket::coordinator
