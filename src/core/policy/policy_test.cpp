#include "policy/policy.hpp"

#include "policy/testing.hpp"

namespace hocket::policy {
namespace {

class AccessPolicies : public ::testing::Test {
 protected:
  void wait(std::uint64_t member, std::uint64_t request) {
    model::Request waiting;
    waiting.id = RequestId{request};
    waiting.member = MemberId{member};
    target.waiting.push_back(waiting);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> decide(const Policy& policy) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> granted;
    for (const Grant& g : policy.decide({cluster, target, Time{}, settings}, {}).grants) {
      granted.emplace_back(g.member.value, g.request.value);
    }
    return granted;
  }
  using Granted = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

  model::Cluster cluster;
  model::Target target;
  model::Application holder;
  AccessSettings settings;
};

TEST_F(AccessPolicies, FcfsGrantsTheFirstOfAFreeTarget) {
  wait(7, 3);
  wait(2, 1);
  EXPECT_EQ(decide(fcfs), (Granted{{7, 3}}));
  target.holders.push_back({&holder, &target, 1, {}});
  EXPECT_EQ(decide(fcfs), Granted{});
  target.holders.back().grants = 0;  // idle hold: the target is kept for it
  EXPECT_EQ(decide(fcfs), Granted{});
}

TEST_F(AccessPolicies, InterfereGrantsAll) {
  wait(7, 3);
  wait(2, 1);
  target.holders.push_back({&holder, &target, 1, {}});
  EXPECT_EQ(decide(interfere), (Granted{{7, 3}, {2, 1}}));
}

TEST(Policies, AreFoundByName) {
  for (const Policy* policy : policies()) {
    const auto found = find_policy(policy->name);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value(), policy);
    EXPECT_FALSE(policy->summary.empty());
  }
}

TEST(Policies, AnUnknownNameIsToldTheNearest) {
  const auto found = find_policy("fcsf");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().text,
            "unknown policy 'fcsf': did you mean 'fcfs'? there are: " + testing::names_of(policies()));
  EXPECT_NE(find_policy("interfear").error().text.find("'interfere'"), std::string::npos);
  EXPECT_FALSE(find_policy(std::string(100000, 'x')).ok());
}

}  // namespace
}  // namespace hocket::policy
