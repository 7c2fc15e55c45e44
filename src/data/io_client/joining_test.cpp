#include "io_client/joining.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/splitmix.hpp"

namespace hocket::io_client {
namespace {

constexpr Duration second = std::chrono::seconds{1};
constexpr Duration instant = std::chrono::milliseconds{1};
constexpr Time start{second * 1000};

TEST(Joining, AnErrorSaysWhetherAnotherAttemptMayHelp) {
  const auto after = [](int error) { return JoinAttempts{start, second}.after(error, start); };
  EXPECT_EQ(after(0), JoinStep::joined);
  EXPECT_EQ(after(ETIMEDOUT), JoinStep::again);
  for (const int error : {ECANCELED, ENXIO, ECONNRESET}) EXPECT_EQ(after(error), JoinStep::pause) << error;
  for (const int error : {ENOSPC, EINVAL, EIO}) EXPECT_EQ(after(error), JoinStep::failed) << error;
}

TEST(Joining, AnAttemptLastsASliceOrWhatIsLeft) {
  const JoinAttempts attempts{start, 10 * second};
  EXPECT_EQ(attempts.slice(start), join_slice);
  EXPECT_EQ(attempts.slice(start + 9 * second), second);
  EXPECT_EQ(attempts.slice(start + 11 * second), instant);
}

TEST(Joining, AVersionIsAwaitedUntilTheTimeLimit) {
  JoinAttempts attempts{start, 3 * second};
  EXPECT_EQ(attempts.after(ETIMEDOUT, start + 2 * second), JoinStep::again);
  EXPECT_EQ(attempts.after(ECANCELED, start + 3 * second - instant), JoinStep::pause);
  EXPECT_EQ(attempts.after(ETIMEDOUT, start + 3 * second), JoinStep::late);
}

TEST(Joining, AbsenceCountsFromWhenItIsFound) {
  JoinAttempts attempts{start, 600 * second};
  // The server was there half a minute ago; it took so long to notice that it hangs.
  EXPECT_EQ(attempts.after(ETIMEDOUT, start), JoinStep::again);
  const Time found = start + 30 * second;
  EXPECT_EQ(attempts.after(ENXIO, found), JoinStep::pause);
  EXPECT_EQ(attempts.after(ENXIO, found + most_absence - instant), JoinStep::pause);
  EXPECT_EQ(attempts.after(ENXIO, found + most_absence), JoinStep::no_server);
}

TEST(Joining, AServerThatComesBackMayLeaveAgain) {
  JoinAttempts attempts{start, 600 * second};
  EXPECT_EQ(attempts.after(ENXIO, start), JoinStep::pause);
  EXPECT_EQ(attempts.after(ECANCELED, start + 4 * second), JoinStep::pause);
  EXPECT_EQ(attempts.after(ENXIO, start + 8 * second), JoinStep::pause);
  EXPECT_EQ(attempts.after(ENXIO, start + 12 * second), JoinStep::pause);
  EXPECT_EQ(attempts.after(ENXIO, start + 13 * second), JoinStep::no_server);
}

TEST(Joining, TheTimeLimitHoldsWithoutAServerToo) {
  JoinAttempts attempts{start, second};
  EXPECT_EQ(attempts.after(ENXIO, start), JoinStep::pause);
  EXPECT_EQ(attempts.after(ENXIO, start + second), JoinStep::no_server);
}

TEST(Joining, AnEndIsAnEndAtAnyTime) {
  JoinAttempts attempts{start, second};
  EXPECT_EQ(attempts.after(0, start + 9 * second), JoinStep::joined);
  EXPECT_EQ(attempts.after(ENOSPC, start + 9 * second), JoinStep::failed);
}

// The model keeps all attempts so far, and computes the absence from them.
TEST(JoiningProperties, AnyCourseEndsWhenItShouldAndNotBefore) {
  std::uint64_t state = 11;
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(splitmix(state += splitmix_step) % static_cast<std::uint64_t>(most + 1));
  };
  constexpr std::array errors{ETIMEDOUT, ECANCELED, ENXIO, ECONNRESET};
  for (int course = 0; course < 2000; ++course) {
    const Duration limit = std::chrono::milliseconds{draw(20'000)};
    JoinAttempts attempts{start, limit};
    Time now = start;
    Time absent_since = Time::max();  // no server is missed
    JoinStep step = JoinStep::again;
    while (step == JoinStep::again || step == JoinStep::pause) {
      const Duration slice = attempts.slice(now);
      ASSERT_GE(slice, instant);
      ASSERT_LE(slice, std::max(instant, std::min(join_slice, start + limit - now)));
      const bool pauses = step == JoinStep::pause;
      now += (pauses ? join_pause : Duration{}) + std::chrono::milliseconds{draw(3'000)};
      const int error = errors[static_cast<std::size_t>(draw(3))];
      step = attempts.after(error, now);
      SCOPED_TRACE(testing::Message() << "course " << course << ", at " << to_s(now - start) << " of " << to_s(limit));
      if (error == ENXIO || error == ECONNRESET) {
        absent_since = std::min(absent_since, now);
        const bool over = now - start >= limit || now - absent_since >= most_absence;
        ASSERT_EQ(step, over ? JoinStep::no_server : JoinStep::pause);
      } else {
        absent_since = Time::max();
        const JoinStep goes_on = error == ETIMEDOUT ? JoinStep::again : JoinStep::pause;
        ASSERT_EQ(step, now - start >= limit ? JoinStep::late : goes_on);
      }
    }
    // Nothing waits longer than the time limit and one attempt with its pause.
    ASSERT_LT(now - start, limit + 4 * second);
  }
}

}  // namespace
}  // namespace hocket::io_client
