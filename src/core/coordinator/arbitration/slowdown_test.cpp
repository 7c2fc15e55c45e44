// Tests the bound on how much slower an application becomes by waiting for grants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using testing::Lines;

CoordinatorSettings slowdown_settings(const policy::Policy& policy, double most_slowdown) {
  CoordinatorSettings settings{{&policy}, seconds{1000}, seconds{0}, seconds{1000}, seconds{100}};
  settings.most_slowdown = most_slowdown;
  return settings;
}

class SlowdownTest : public testing::AccessScript {
 protected:
  SlowdownTest() : AccessScript(slowdown_settings(policy::fcfs, 0.1)) {}
  void hello(std::int64_t ms, std::uint64_t member) {
    Script::hello(member, "job" + std::to_string(member), "app", 4, ms);
  }
  Lines start(std::int64_t ms, std::uint64_t member, std::uint64_t request) {
    return Script::start(ms, member, request, "disk", 1, "op");
  }
};

TEST_F(SlowdownTest, WhoHasWaitedForTooLongIsGrantedBesideTheHolder) {
  hello(0, 1);
  hello(0, 2);
  start(9'000, 1, 1);
  EXPECT_EQ(start(9'000, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind app"});
  ASSERT_EQ(coordinator.deadline(), Time{} + milliseconds{10'000}) << "a tenth of the 9 s without waits, and 0.1 s";
  EXPECT_EQ(tick(9'999), Lines{});
  EXPECT_EQ(tick(10'000), Lines{"2 GRANT_IO 1 waited 1000"});
  // The application does not wait again for what it has waited for: 1.06 s of 10.6 s less that 1. Its access took
  // 0.6 s beside the holder, so 0.3 s alone. The holder has hardly anything left (0.02 s). Without coordination it
  // would not be as far, and would slow the next one down from 0.3 to 0.6 s.
  at(10'600, 2, event::FinishIo{RequestId{1}, {}, 0, true});
  EXPECT_EQ(start(10'600, 2, 2), Lines{"2 QUEUED_IO 2 position 1 behind app"});
  ASSERT_TRUE(coordinator.deadline());
  EXPECT_NEAR(to_s(*coordinator.deadline() - Time{}), 10.66 + 0.6 - 0.32, 1e-6);
}

TEST_F(SlowdownTest, AnApplicationThatHasJustArrivedWaitsForATenthOfASecondAtMost) {
  hello(0, 1);
  hello(5'000, 2);
  start(5'000, 1, 1);
  EXPECT_EQ(start(5'000, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind app"});
  ASSERT_EQ(coordinator.deadline(), Time{} + milliseconds{5'100});
  EXPECT_EQ(tick(5'100), Lines{"2 GRANT_IO 1 waited 100"});
}

class InterruptedTest : public testing::AccessScript {
 protected:
  InterruptedTest() : AccessScript(slowdown_settings(policy::interrupt, 1)) {}  // 1: no bound
};

// An access runs for 1.1 s, waits 9.9 s while another one goes before it, then runs its last second. Without
// coordination, the two would have shared the target from the second at which the other came.
TEST_F(InterruptedTest, TheWaitInTheMiddleOfAnAccessCounts) {
  for (const std::uint64_t member : {1, 2}) hello(member, "job" + std::to_string(member));
  const event::StartIo large{RequestId{1}, "disk", "/f", "MPI_File_write_at_all", 1000};
  at(1'000, 1, large);
  ASSERT_THAT(at(2'000, 2, large), Contains("1 PAUSE_IO 1 because of app-2"));
  ASSERT_THAT(at(2'100, 1, event::PausedIo{RequestId{1}, 500, 1}), Contains("2 GRANT_IO 1 waited 100"));
  const event::FinishIo end{RequestId{1}, seconds{10}, 10'000, true};
  ASSERT_THAT(at(12'000, 2, end), Contains("1 GRANT_IO 1 waited 9900"));
  at(13'000, 1, event::FinishIo{RequestId{1}, milliseconds{2'100}, 1000, true});
  const model::Application& interrupted = coordinator.cluster().applications().begin()->second;
  EXPECT_NEAR(interrupted.late_s, 12 - 1 - 2 * 1.1, 1);
  const auto known = interrupted.accesses.access(0, 1000);
  EXPECT_FALSE(known) << "all of its bytes were taken to be written in the last second: " << known->seconds << " s";
}

TEST_F(SlowdownTest, NothingIsLeftOfRequestsThatAreGone) {
  hello(0, 1);
  hello(0, 2);
  start(9'000, 1, 1);
  start(9'000, 2, 1);
  at(9'100, 2, event::Lost{});
  at(9'200, 1, event::Lost{});
  EXPECT_EQ(coordinator.deadline(), std::nullopt);
}

}  // namespace
}  // namespace hocket::coordinator
