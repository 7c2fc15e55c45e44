// Tests the predicted outcome of choices over the next I/O phases.
#include "policy/lookahead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace hocket::policy {
namespace {

Actor writes(double left_s, bool has, double computing_s, double size_s) {
  Actor actor;
  actor.left_s = left_s;
  actor.stop_s = left_s;
  actor.has = has;
  actor.phases = {{computing_s, size_s}};
  return actor;
}

Actor computes(double starts_in_s, double computing_s, double size_s) {
  Actor actor = writes(0, false, computing_s, size_s);
  actor.starts_in_s = starts_in_s;
  return actor;
}

Opening together() {
  Opening all;
  all.together = true;
  return all;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(Lookahead, WhoIsAloneLosesNothing) {
  const std::vector<Actor> alone{writes(1, true, 2, 1)};
  EXPECT_NEAR(lost_s(alone, {}, 30)[0], 0, 1e-6);
}

TEST(Lookahead, TheOneBehindWaitsForWhatIsLeft) {
  const std::vector<Actor> both{writes(1, true, 100, 1), writes(2, false, 100, 2)};
  const auto waits = lost_s(both, {}, 50);
  EXPECT_NEAR(waits[0], 0, 1e-6);
  EXPECT_NEAR(waits[1], 1, 1e-6);
  const auto beside = lost_s(both, {{1}}, 50);
  EXPECT_NEAR(beside[0], 1, 1e-6);
  EXPECT_NEAR(beside[1], 1, 1e-6) << "beside it, it ends no sooner";
}

TEST(Lookahead, TheInterruptedOneLosesWhatTheOtherTakes) {
  std::vector<Actor> both{writes(10, true, 100, 10), writes(1, false, 100, 1)};
  both[0].stop_s = 0.5;
  const auto lost = lost_s(both, {{1}, 0}, 50);
  EXPECT_NEAR(lost[0], 1, 1e-6);
  EXPECT_NEAR(lost[1], 0.5, 1e-6);
}

TEST(Lookahead, WhoBeginsLaterIsBesideTheOtherForThatMuchLess) {
  const std::vector<Actor> both{writes(2, true, 100, 2), writes(1, false, 100, 1)};
  const auto lost = lost_s(both, {{1}, {}, 1.5}, 50);
  EXPECT_NEAR(lost[0], 0.5, 1e-6);
  EXPECT_NEAR(lost[1], 2, 1e-6);
}

// Two applications have the same period. One wait moves them apart for good; overlapping keeps them in step.
TEST(Lookahead, ToWaitOncePaysWherePhasesMeetAgainAndAgain) {
  const std::vector<Actor> both{writes(1, true, 3, 1), writes(1, false, 3, 1)};
  EXPECT_NEAR(sum(lost_s(both, {}, 12)), 1, 1e-6);
  EXPECT_GT(sum(lost_s(both, together(), 12)), 5);
}

TEST(Lookahead, WhoComputesComesWhenHeIsExpected) {
  const std::vector<Actor> both{writes(2, true, 100, 2), computes(1, 100, 1)};
  const auto lost = lost_s(both, {}, 50);
  EXPECT_NEAR(lost[1], 1, 1e-6) << "the holder has no more left than it asks for: it waits";
  const std::vector<Actor> small{writes(2, true, 100, 2), computes(1, 100, 0.1)};
  EXPECT_NEAR(lost_s(small, {}, 50)[1], 0.1, 1e-6) << "the small one goes on beside it";
}

// By the rule that holds after each choice, no application ends later than by sharing, if sharing only divides the
// bandwidth.
TEST(LookaheadProperty, OfPhasesThatMeetOnceNobodyLosesMoreThanBySharing) {
  std::uint64_t seed = 7;
  const auto draw = [&] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(seed >> 11) / 9007199254740992.0;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<Actor> actors{computes(draw(), 1000, 0.1 + 3 * draw()), computes(draw(), 1000, 0.1 + 3 * draw())};
    const auto ordered = lost_s(actors, {}, 100);
    const auto shared = lost_s(actors, together(), 100);
    for (std::size_t i = 0; i < actors.size(); ++i) ASSERT_LE(ordered[i], shared[i] + 1e-6) << round;
  }
}

}  // namespace
}  // namespace hocket::policy
