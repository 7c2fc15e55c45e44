// Tests policy `interrupt`, and the bounds of preemption, which `dynamic` shares.
#include "policy/testing.hpp"

namespace hocket::policy {
namespace {

class InterruptTest : public testing::OneTarget {};

TEST_F(InterruptTest, NobodyIsInterruptedWithoutEnd) {
  model::Application& large = holds(64, 100, 0, 10);
  waits(64, 1, 10);
  large.demand.interruptions = settings.most_interruptions - 1;
  for (const Policy* policy : {&dynamic, &interrupt}) EXPECT_FALSE(decide(*policy, 10).interruptions.empty());
  large.demand.interruptions = settings.most_interruptions;
  for (const Policy* policy : {&dynamic, &interrupt}) EXPECT_TRUE(decide(*policy, 10).interruptions.empty());
}

TEST_F(InterruptTest, NothingIsDecidedWhileOneIsAboutToPause) {
  holds(64, 100, 0, 10);
  waits(64, 1, 10);
  target.holders.front().pausing = true;
  for (const Policy* policy : {&dynamic, &interrupt}) {
    const AccessDecision decision = decide(*policy, 10);
    EXPECT_TRUE(decision.grants.empty() && decision.interruptions.empty());
  }
}

TEST_F(InterruptTest, TheLastToComeGoesFirstAndTheLastStoppedGoesOnFirst) {
  model::Application& first = waits(8, 10, 0);
  model::Application& second = waits(8, 10, 1);
  EXPECT_EQ(granted(decide(interrupt, 2)), std::vector{second.id});
  first.demand.granted = second.demand.granted = true;
  target.waiting.front().since = at(5);
  target.waiting.back().since = at(3);
  EXPECT_EQ(granted(decide(interrupt, 6)), std::vector{first.id});
}

}  // namespace
}  // namespace hocket::policy
