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
  actor.has = has;
  actor.phases = {{computing_s, size_s}};
  return actor;
}

Actor computes(double starts_in_s, double computing_s, double size_s) {
  Actor actor = writes(0, false, computing_s, size_s);
  actor.starts_in_s = starts_in_s;
  return actor;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(Lookahead, WhoIsAloneLosesNothing) {
  const std::vector<Actor> alone{writes(1, true, 2, 1)};
  EXPECT_NEAR(lost_s(alone, std::nullopt, 30)[0], 0, 1e-6);
}

TEST(Lookahead, TheOneBehindWaitsForWhatIsLeft) {
  const std::vector<Actor> both{writes(1, true, 100, 1), writes(2, false, 100, 2)};
  const auto waits = lost_s(both, std::nullopt, 50);
  EXPECT_NEAR(waits[0], 0, 1e-6);
  EXPECT_NEAR(waits[1], 1, 1e-6);
  const auto beside = lost_s(both, 1, 50);
  EXPECT_NEAR(beside[0], 1, 1e-6);
  EXPECT_NEAR(beside[1], 1, 1e-6) << "beside it, it ends no sooner";
}

// Two applications have the same period. One wait moves them apart for good; overlapping keeps them in step for a
// while.
TEST(Lookahead, ToWaitOncePaysWherePhasesMeetAgainAndAgain) {
  const std::vector<Actor> both{writes(1, true, 3, 1), writes(1, false, 3, 1)};
  EXPECT_NEAR(sum(lost_s(both, std::nullopt, 12)), 1, 1e-6);
  EXPECT_GT(sum(lost_s(both, 1, 12)), 2.9);
}

// The second one's period with its wait is the first one's: it would wait in each period.
TEST(Lookahead, ToWaitKeepsThoseInStepWhosePeriodsTheWaitMakesAlike) {
  const std::vector<Actor> both{writes(0.4, true, 1, 0.4), writes(0.45, false, 0.55, 0.45)};
  EXPECT_GT(lost_s(both, std::nullopt, 2.8)[1], 0.75);
  EXPECT_LT(lost_s(both, 1, 2.8)[1], 0.5);
}

TEST(Lookahead, WhoComputesComesWhenHeIsExpected) {
  const std::vector<Actor> both{writes(2, true, 100, 2), computes(1, 100, 1)};
  const auto lost = lost_s(both, std::nullopt, 50);
  EXPECT_NEAR(lost[1], 1, 1e-6) << "the holder has no more left than it asks for: it waits";
  const std::vector<Actor> small{writes(2, true, 100, 2), computes(1, 100, 0.1)};
  EXPECT_NEAR(lost_s(small, std::nullopt, 50)[1], 0.1, 1e-6) << "the small one goes on beside it";
}

// What the second of two phases loses where both share evenly: it asks for `second_s` alone when the first has
// `left_s`.
double lost_by_sharing(double left_s, double second_s) { return std::min(left_s, second_s); }

// By the rule that holds after each choice, no application ends later than by sharing, if sharing only divides the
// bandwidth.
TEST(LookaheadProperty, OfPhasesThatMeetOnceNobodyLosesMoreThanBySharing) {
  std::uint64_t seed = 7;
  const auto draw = [&] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(seed >> 11) / 9007199254740992.0;
  };
  for (int round = 0; round < 2000; ++round) {
    const double first_s = 0.1 + 3 * draw();
    const double second_s = 0.1 + 3 * draw();
    const double comes_s = draw() * first_s;
    const std::vector<Actor> actors{writes(first_s, true, 1000, first_s), computes(comes_s, 1000, second_s)};
    const auto lost = lost_s(actors, std::nullopt, 100);
    const double shared_s = lost_by_sharing(first_s - comes_s, second_s);
    ASSERT_LE(lost[0], shared_s + 1e-6) << round;
    ASSERT_LE(lost[1], shared_s + 1e-6) << round;
  }
}

}  // namespace
}  // namespace hocket::policy
