// Tests the bound on how much slower an application becomes by waiting for grants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using testing::describe_but_waits;
using testing::event_of;
using Lines = std::vector<std::string>;

class SlowdownTest : public ::testing::Test {
 protected:
  static Settings settings() {
    Settings settings{{&policy::fcfs}, seconds{1000}, seconds{0}, seconds{1000}, seconds{100}};
    settings.most_slowdown = 0.1;
    return settings;
  }
  Lines at(std::int64_t ms, std::uint64_t member, event::Body body) {
    return describe_but_waits(coordinator.handle(event_of(ms, member, std::move(body))));
  }
  void hello(std::int64_t ms, std::uint64_t member) {
    at(ms, member, event::Hello{"job" + std::to_string(member), "app", "/bin/a", "mpich", "0.1", 1, 4});
  }
  Lines start(std::int64_t ms, std::uint64_t member, std::uint64_t request) {
    return at(ms, member, event::StartIo{RequestId{request}, "disk", "/f", "op", 1});
  }

  Coordinator coordinator{settings()};
};

TEST_F(SlowdownTest, WhoHasWaitedForTooLongIsGrantedBesideTheHolder) {
  hello(0, 1);
  hello(0, 2);
  start(9'000, 1, 1);
  EXPECT_EQ(start(9'000, 2, 1), Lines{"2 QUEUED_IO 1 position 1 behind app"});
  ASSERT_EQ(coordinator.deadline(), Time{} + milliseconds{10'000}) << "a tenth of the 9 s without waits, and 0.1 s";
  EXPECT_EQ(at(9'999, 0, event::Tick{}), Lines{});
  EXPECT_EQ(at(10'000, 0, event::Tick{}), Lines{"2 GRANT_IO 1 waited 1000"});
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
  EXPECT_EQ(at(5'100, 0, event::Tick{}), Lines{"2 GRANT_IO 1 waited 100"});
}

// An access runs for 1.1 s, waits 9.9 s while another one goes before it, then runs its last second. Without
// coordination, the two would have shared the target from the second at which the other came.
TEST(InterruptedTest, TheWaitInTheMiddleOfAnAccessCounts) {
  Settings settings{{&policy::interrupt}, seconds{1000}, seconds{0}, seconds{1000}, seconds{100}};
  settings.most_slowdown = 1;  // no bound
  Coordinator coordinator{settings};
  const auto at = [&](std::int64_t ms, std::uint64_t member, event::Body body) {
    return describe_but_waits(coordinator.handle(event_of(ms, member, std::move(body))));
  };
  for (const std::uint64_t member : {1, 2})
    at(0, member, event::Hello{"job" + std::to_string(member), "app", "/bin/a", "mpich", "0.1", 1, 4});
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
