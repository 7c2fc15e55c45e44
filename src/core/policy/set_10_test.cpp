// Tests policy `set-10`.
#include "policy/testing.hpp"

namespace hocket::policy {
namespace {

class Set10Test : public testing::OneTarget {};

TEST_F(Set10Test, SetsShareAndOneOfEachIsServed) {
  const AppId frequent = waits(8, 1, 10).id;  // set of periods around 10 s
  const AppId also = waits(8, 1, 12).id;
  const AppId rare = waits(8, 1, 100).id;
  const AccessDecision decision = decide(set_10, 100);
  EXPECT_EQ(granted(decision), (std::vector{frequent, rare}));
  ASSERT_EQ(decision.shares.size(), 2u);
  EXPECT_EQ(decision.shares[0].application, frequent);
  EXPECT_NEAR(decision.shares[0].part, 10.0 / 11, 1e-9);
  EXPECT_NEAR(decision.shares[1].part, 1.0 / 11, 1e-9);
  EXPECT_EQ(decision.choices.at(0).application, also);
}

TEST_F(Set10Test, WhoBeginsWithALongPhaseIsInNoSetOfShortPeriods) {
  const AppId large = waits(8, 100, 0.01).id;  // 100 s of I/O, right after its start
  const AppId small = waits(8, 1, 10).id;
  const AccessDecision decision = decide(set_10, 11);
  ASSERT_EQ(decision.shares.size(), 2u);
  EXPECT_EQ(decision.shares[0].application, small);
  EXPECT_EQ(decision.shares[1].application, large);
}

}  // namespace
}  // namespace hocket::policy
