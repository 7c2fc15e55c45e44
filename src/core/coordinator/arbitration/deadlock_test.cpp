// Applications that have what others wait for: which deadlocks are broken, and which waits are not deadlocks. Random
// cases: deadlock_property_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Lines;

class DeadlockTest : public testing::AccessScript {
 protected:
  static CoordinatorSettings settings(const policy::Policy& policy, Duration turn) {
    return {{&policy}, seconds{100}, milliseconds{20}, turn, seconds{1}};
  }
  DeadlockTest() : AccessScript(settings(policy::fcfs, seconds{60})) {}

  Lines hello(std::uint64_t member, const std::string& name) { return Script::hello(member, "job-" + name, name); }
  // Returns the grants between two times that are due to time alone.
  Lines granted(std::int64_t from_ms, std::int64_t to_ms) {
    Lines found;
    for (std::int64_t ms = from_ms; ms <= to_ms; ms += 5) {
      for (Lines lines = tick(ms); const std::string& line : lines)
        if (line.find("GRANT_IO") != std::string::npos) found.push_back(line);
    }
    return found;
  }
  // Processes 1 and 2 belong to one application, 3 and 4 to another.
  void hello_twice() {
    for (const std::uint64_t member : {1U, 2U}) hello(member, "a");
    for (const std::uint64_t member : {3U, 4U}) hello(member, "b");
  }
  // In each application, one process has what the other application's second one waits for.
  void cross() {
    hello_twice();
    start(0, 1, 1, "t");
    start(0, 3, 1, "u");
    start(10, 2, 1, "u");
    start(20, 4, 1, "t");
  }
};

// Each has what the other waits for: none would end its operation before it gives up.
TEST_F(DeadlockTest, IsBroken) {
  hello(1, "a");
  hello(2, "b");
  start(0, 1, 1, "t");
  start(1, 2, 1, "u");
  EXPECT_EQ(start(2, 1, 2, "u"), Lines{"1 QUEUED_IO 2 position 1 behind b"});
  EXPECT_EQ(start(500, 2, 2, "t"), Lines{"2 QUEUED_IO 2 position 1 behind a"});
  EXPECT_EQ(granted(1000, 5495), Lines{});
  EXPECT_EQ(deadline_ms(), 5500);
  EXPECT_EQ(tick(5500), (Lines{"2 GRANT_IO 2 waited 5000", "0 DECISION 3 fcfs deadlock b 4 to 4"}));
  EXPECT_EQ(finish(6000, 2, 2), Lines{});
  EXPECT_EQ(finish(6100, 2, 1), Lines{"1 GRANT_IO 2 waited 6098"});
}

TEST_F(DeadlockTest, OfThreeIsBroken) {
  hello(1, "a");
  hello(2, "b");
  hello(3, "c");
  start(0, 1, 1, "t");
  start(0, 2, 1, "u");
  start(0, 3, 1, "v");
  start(10, 1, 2, "u");
  start(20, 2, 2, "v");
  EXPECT_EQ(deadline_ms(), 1010) << "reminders: nothing is deadlocked yet";
  start(30, 3, 2, "t");
  EXPECT_EQ(granted(1000, 5025), Lines{});
  const Lines told = tick(5030);
  EXPECT_EQ(std::count(told.begin(), told.end(), "3 GRANT_IO 2 waited 5000"), 1);
}

TEST_F(DeadlockTest, WhoHasATargetAndWaitsForAnotherIsWaitedFor) {
  for (const std::uint64_t member : {1U, 2U, 3U}) hello(member, std::to_string(member));
  start(0, 1, 1, "t");
  start(1, 2, 1, "u");
  start(2, 1, 2, "u");
  start(3, 3, 1, "t");
  EXPECT_EQ(granted(1000, 30'000), Lines{}) << "there is no circle";
}

// Processes 1 and 3 end an operation every 100 ms; other processes of their applications wait.
TEST_F(DeadlockTest, OperationsThatEndAreNone) {
  cross();
  for (std::uint64_t r = 1; r < 500; ++r) {
    const auto ms = static_cast<std::int64_t>(100 * r);
    for (const std::uint64_t member : {1U, 3U}) {
      Lines told = finish(ms, member, r, false);
      const Lines more = start(ms, member, r + 1, member == 1 ? "t" : "u");
      told.insert(told.end(), more.begin(), more.end());
      for (const std::string& line : told) {
        ASSERT_NE(line.substr(0, 10), "2 GRANT_IO") << "at " << ms;
        ASSERT_NE(line.substr(0, 10), "4 GRANT_IO") << "at " << ms;
      }
    }
  }
}

// Processes other than the waiting ones have operations under way. These will end, but the wait for them is bounded.
TEST_F(DeadlockTest, OfOtherProcessesIsBrokenAfterATurn) {
  cross();
  EXPECT_EQ(granted(1000, 60'015), Lines{});
  EXPECT_EQ(granted(60'020, 60'020), Lines{"4 GRANT_IO 1 waited 60000"});
}

// Applications a and b have the target together. Their other processes wait for c, which comes next, not for each
// other.
TEST_F(DeadlockTest, WhoHaveATargetTogetherDoNotWaitForEachOther) {
  restart(settings(policy::interfere, seconds{3}));
  hello_twice();
  hello(5, "c");
  start(0, 1, 1, "t");
  start(0, 3, 1, "t");
  at(1, 9, event::SetPolicy{"fcfs"});
  start(2, 5, 1, "t");
  start(4000, 2, 1, "t");
  start(4000, 4, 1, "t");
  EXPECT_EQ(granted(5000, 5000).size(), 2U) << "held up by what began before the turn was over";
  finish(6000, 1, 1, false);
  finish(6000, 3, 1, false);
  start(6000, 1, 2, "t");
  start(6000, 3, 2, "t");
  EXPECT_EQ(granted(6005, 20'000), Lines{});
  finish(20'100, 2, 1, false);
  const Lines told = finish(20'200, 4, 1, false);
  EXPECT_EQ(std::count(told.begin(), told.end(), "5 GRANT_IO 1 waited 20198"), 1);
}

}  // namespace
}  // namespace hocket::coordinator
