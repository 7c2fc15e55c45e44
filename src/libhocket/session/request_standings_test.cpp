#include "session/request_standings.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "session/request_standings_testing.hpp"

namespace hocket::runtime {
namespace {

using testing::all_inputs;
using testing::all_standings;
using testing::name_of;
using Lines = std::vector<std::string>;

// Returns the step as words: where it leads, and its actions.
std::string describe(Standing standing, StandingInput input) {
  constexpr std::array<std::pair<StandingAction, const char*>, 12> actions{{
      {StandingAction::start_waiting, "start_waiting"},
      {StandingAction::hear, "hear"},
      {StandingAction::take_share, "take_share"},
      {StandingAction::whole_share, "whole_share"},
      {StandingAction::hold, "hold"},
      {StandingAction::release, "release"},
      {StandingAction::tell, "tell"},
      {StandingAction::answer, "answer"},
      {StandingAction::send_start, "send_start"},
      {StandingAction::send_paused, "send_paused"},
      {StandingAction::send_finish, "send_finish"},
      {StandingAction::withdraw, "withdraw"},
  }};
  const StandingStep step = standing_step(standing, input);
  std::string text = name_of(input) + ":";
  if (step.next != standing) text += " -> " + name_of(step.next);
  for (const auto& [action, name] : actions)
    if (step.does(action)) text += std::string(" ") + name;
  return text;
}

// Returns those steps of a standing that lead elsewhere or have an action.
Lines steps_of(Standing standing) {
  Lines lines;
  for (const StandingInput input : all_inputs()) {
    const StandingStep step = standing_step(standing, input);
    if (step.next != standing || step.actions != StandingAction::nothing) lines.push_back(describe(standing, input));
  }
  return lines;
}

// Returns the names of the inputs that cannot come in a standing.
std::string impossible_in(Standing standing) {
  std::string names;
  for (const StandingInput input : all_inputs())
    if (!standing_step(standing, input).possible) names += (names.empty() ? "" : " ") + name_of(input);
  return names;
}

TEST(RequestStandings, NothingIsKnownOfARequestBeforeAndAfter) {
  EXPECT_EQ(steps_of(Standing::none), (Lines{"ask: -> queued start_waiting send_start", "finish: release send_finish",
                                             "ask_delegated: -> offered send_start"}));
  EXPECT_EQ(impossible_in(Standing::none), "finish pause_unattended refuse lose lose_step drop recall");
}

TEST(RequestStandings, AQueuedOneWaitsForItsGrant) {
  EXPECT_EQ(
      steps_of(Standing::queued),
      (Lines{"finish: -> none release send_finish", "grant: -> offered take_share", "queue: hear",
             "expire: -> expired release", "refuse: -> alone release withdraw", "silence: -> alone release withdraw",
             "long_wait: -> alone release withdraw", "leave: -> alone release withdraw", "lose: whole_share",
             "lose_step: -> alone whole_share", "no_connection: -> alone release", "drop: -> none"}));
  EXPECT_EQ(impossible_in(Standing::queued), "ask take_up pause pause_unattended expire ask_delegated recall");
}

TEST(RequestStandings, AnOfferedOneIsTakenUpOrGivenBack) {
  EXPECT_EQ(steps_of(Standing::offered),
            (Lines{"take_up: -> granted hold", "finish: -> none release send_finish", "grant: take_share",
                   "pause: -> to_pause tell", "pause_unattended: -> to_pause answer", "expire: -> expired release",
                   "lose: whole_share", "lose_step: whole_share", "drop: -> none"}));
  EXPECT_EQ(impossible_in(Standing::offered), "ask queue silence long_wait leave no_connection drop ask_delegated");
}

TEST(RequestStandings, AGrantedOneIsUsedUntilItEndsOrIsToPause) {
  EXPECT_EQ(steps_of(Standing::granted),
            (Lines{"finish: -> none release send_finish", "grant: take_share", "pause: -> to_pause tell",
                   "pause_unattended: -> to_pause tell", "expire: -> expired release", "lose: whole_share",
                   "lose_step: whole_share", "drop: -> none", "recall: hold"}));
  EXPECT_EQ(impossible_in(Standing::granted), "ask queue silence long_wait leave no_connection drop ask_delegated");
}

TEST(RequestStandings, OneThatIsToPauseStopsOrEnds) {
  EXPECT_EQ(
      steps_of(Standing::to_pause),
      (Lines{"take_up: hold", "stop: -> paused start_waiting release send_paused",
             "finish: -> none release send_finish", "grant: take_share", "expire: -> expired release",
             "lose: -> granted whole_share", "lose_step: -> granted whole_share", "drop: -> none", "recall: hold"}));
  EXPECT_EQ(impossible_in(Standing::to_pause),
            "ask grant queue pause pause_unattended silence long_wait leave no_connection drop ask_delegated recall");
}

TEST(RequestStandings, APausedOneWaitsLikeAQueuedOne) {
  EXPECT_EQ(steps_of(Standing::paused),
            (Lines{"finish: -> none release send_finish", "grant: -> offered take_share", "queue: hear",
                   "expire: -> expired release", "silence: -> alone release withdraw",
                   "long_wait: -> alone release withdraw", "leave: -> alone release withdraw", "lose: whole_share",
                   "lose_step: -> alone whole_share", "no_connection: -> alone release", "drop: -> none"}));
  EXPECT_EQ(impossible_in(Standing::paused), "ask pause pause_unattended drop ask_delegated recall");
}

TEST(RequestStandings, AnExpiredOneOnlyEnds) {
  EXPECT_EQ(steps_of(Standing::expired), (Lines{"finish: -> none release send_finish", "lose: whole_share",
                                                "lose_step: whole_share", "drop: -> none"}));
  EXPECT_EQ(impossible_in(Standing::expired),
            "ask grant queue pause pause_unattended silence long_wait leave no_connection ask_delegated recall");
}

TEST(RequestStandings, OneThatGoesOnAloneOnlyEnds) {
  EXPECT_EQ(steps_of(Standing::alone), (Lines{"finish: -> none release send_finish", "expire: -> expired release",
                                              "lose: whole_share", "lose_step: whole_share", "drop: -> none"}));
  EXPECT_EQ(impossible_in(Standing::alone), "ask silence long_wait leave no_connection ask_delegated recall");
}

// ---- rules that hold for every step that can happen --------------------------------------------------------------

constexpr bool has_grant(Standing standing) {
  return standing == Standing::offered || standing == Standing::granted || standing == Standing::to_pause;
}

TEST(RequestStandings, HoldTheLeaseOnlyWithAGrant) {
  for (const Standing standing : all_standings()) {
    for (const StandingInput input : all_inputs()) {
      SCOPED_TRACE(name_of(standing) + ", " + describe(standing, input));
      const StandingStep step = standing_step(standing, input);
      if (!step.possible) continue;
      EXPECT_TRUE(has_grant(step.next) || !step.does(StandingAction::hold));
      EXPECT_TRUE(has_grant(step.next) || !has_grant(standing) || step.does(StandingAction::release));
    }
  }
}

TEST(RequestStandings, BeginATimeLimitWithEveryWait) {
  for (const Standing standing : all_standings()) {
    for (const StandingInput input : all_inputs()) {
      SCOPED_TRACE(name_of(standing) + ", " + describe(standing, input));
      const StandingStep step = standing_step(standing, input);
      const bool begins = is_waiting(step.next) && step.next != standing;
      EXPECT_EQ(step.does(StandingAction::start_waiting), begins);
    }
    if (!is_waiting(standing)) continue;
    for (const StandingInput limit : {StandingInput::silence, StandingInput::long_wait, StandingInput::leave})
      EXPECT_EQ(standing_step(standing, limit).next, Standing::alone) << "every wait has an end";
  }
}

// hocketd keeps the request until it is told otherwise, unless it has revoked it or does not know it.
TEST(RequestStandings, TellHocketdWhereAGrantEnds) {
  const auto tells = StandingAction::send_paused | StandingAction::send_finish | StandingAction::withdraw;
  for (const Standing standing : all_standings()) {
    if (!has_grant(standing)) continue;
    for (const StandingInput input : all_inputs()) {
      const StandingStep step = standing_step(standing, input);
      if (!step.possible || has_grant(step.next) || input == StandingInput::expire) continue;
      EXPECT_TRUE(step.does(tells)) << name_of(standing) << ", " << describe(standing, input);
    }
  }
}

}  // namespace
}  // namespace hocket::runtime
