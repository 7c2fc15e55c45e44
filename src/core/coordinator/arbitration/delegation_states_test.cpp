#include "coordinator/arbitration/delegation_states.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "coordinator/state_table_testing.hpp"

namespace hocket::coordinator {
namespace {

using Lines = std::vector<std::string>;

Lines effects_in(DelegationState state) {
  const testing::Names<3> states{"none", "held", "recalled"};
  const testing::Names<5> inputs{"give", "want", "returned", "expire", "leave"};
  const auto words = [](DelegationAction action) {
    constexpr std::array names{"", "give", "recall", "end", "revoke"};
    return names.at(static_cast<std::size_t>(action));
  };
  return testing::effects_in(state, &delegation_step, states, inputs, words);
}

TEST(DelegationStates, IsGivenOnce) { EXPECT_EQ(effects_in(DelegationState::none), Lines{"give -> held: give"}); }

TEST(DelegationStates, LastsUntilSomebodyElseAsks) {
  EXPECT_EQ(effects_in(DelegationState::held),
            (Lines{"want -> recalled: recall", "returned -> none: end", "leave -> none: revoke"}));
}

TEST(DelegationStates, EndsWithTheAnswerOrTheLease) {
  EXPECT_EQ(effects_in(DelegationState::recalled),
            (Lines{"returned -> none: end", "expire -> none: revoke", "leave -> none: revoke"}));
}

}  // namespace
}  // namespace hocket::coordinator
