#include "policy/combination.hpp"

#include "policy/testing.hpp"

namespace hocket::policy {
namespace {

Combination parsed(std::string_view text) {
  const auto result = parse_combination(text);
  EXPECT_TRUE(result.ok()) << text << ": " << (result.ok() ? "" : result.error().text);
  return result.ok() ? result.value() : Combination{};
}

std::string refusal(std::string_view text) {
  const auto result = parse_combination(text);
  EXPECT_FALSE(result.ok()) << text;
  return result.ok() ? "" : result.error().text;
}

TEST(Combinations, APolicyForAccessIsAlone) {
  EXPECT_EQ(parsed("fcfs").access, &fcfs);
  EXPECT_EQ(parsed("interfere").access, &interfere);
  EXPECT_EQ(parsed("none").access, &interfere);
  EXPECT_EQ(parsed("fcfs").interference, nullptr);
  EXPECT_EQ(parsed("fcfs").sharing, nullptr);
}

TEST(Combinations, APolicyForCoresComesWithFcfs) {
  for (const CorePolicy* policy : core_policies()) {
    const Combination alone = parsed(policy->name);
    EXPECT_EQ(alone.access, &fcfs);
    EXPECT_EQ(policy->kind == CoreKind::sharing ? alone.sharing : alone.interference, policy);
    EXPECT_FALSE(policy->summary.empty());
    EXPECT_EQ(parsed("interfere+" + std::string{policy->name}).access, &interfere);
  }
}

TEST(Combinations, SlowServersAreSetAsideUnlessAnotherPolicyIsNamed) {
  EXPECT_EQ(&parsed("interfere+fair").for_servers(), &set_aside);
  EXPECT_EQ(parsed("interfere+fair").servers, nullptr);
  for (const ServerPolicy* policy : server_policies()) {
    const Combination alone = parsed(policy->name);
    EXPECT_EQ(alone.access, &cost) << "the default";
    EXPECT_EQ(&alone.for_servers(), policy);
    EXPECT_TRUE(alone.has_others());
    EXPECT_EQ(text_of(alone), "cost+" + std::string{policy->name});
    EXPECT_FALSE(policy->summary.empty());
  }
  EXPECT_EQ(refusal("set-aside+set-aside"),
            "policies 'set-aside' and 'set-aside' are both for I/O servers: name one of them");
}

TEST(Combinations, OneOfEachKindInAnyOrder) {
  for (const char* text : {"fcfs+phase-shift+io-aware", "io-aware+fcfs+phase-shift", " phase-shift + io-aware "}) {
    const Combination all = parsed(text);
    EXPECT_EQ(all.access, &fcfs);
    EXPECT_EQ(all.interference, &phase_shift);
    EXPECT_EQ(all.sharing, &io_aware);
    EXPECT_EQ(text_of(all), "fcfs+phase-shift+io-aware");
  }
}

TEST(Combinations, TheirTextParsesToThem) {
  for (const Policy* access : policies()) {
    for (const CorePolicy* policy : core_policies()) {
      const std::string text = std::string{access->name} + "+" + std::string{policy->name};
      EXPECT_EQ(text_of(parsed(text)), text);
    }
    EXPECT_EQ(text_of(parsed(access->name)), access->name);
  }
  EXPECT_EQ(text_of(Combination{}), "interfere");
}

TEST(Combinations, APolicyForServersAloneLeavesTheOthersAsTheyAre) {
  EXPECT_EQ(text_of(parsed("set-aside")), "cost+set-aside");
  const Combination before = parsed("dynamic+phase-shift+fair");
  EXPECT_EQ(text_of(parse_combination("set-aside", {}, before).value()), "dynamic+phase-shift+fair+set-aside");
  EXPECT_EQ(text_of(parse_combination("fair+set-aside", {}, before).value()), "fcfs+fair+set-aside");
}

TEST(Combinations, ALoadedPolicyIsNamedLikeTheOthers) {
  const CorePolicy mine{"mine", "", CoreKind::sharing, fair.decide};
  const Policy turns{"turns", "", fcfs.decide};
  const auto result = parse_combination("fcfs+phase-shift+mine", {nullptr, &mine});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().sharing, &mine);
  EXPECT_EQ(text_of(result.value()), "fcfs+phase-shift+mine");
  EXPECT_EQ(parse_combination("turns", {&turns, nullptr}).value().access, &turns);
  EXPECT_FALSE(parse_combination("mine").ok());
  EXPECT_FALSE(parse_combination("mine+fair", {nullptr, &mine}).ok()) << "two of one kind";
}

TEST(Combinations, ALoadedPolicyTakesThePlaceOfItsKind) {
  const CorePolicy mine{"mine", "", CoreKind::interference, phase_shift.decide};
  const Policy turns{"turns", "", fcfs.decide};
  EXPECT_EQ(text_of(with(parsed("fcfs+phase-shift+fair"), {nullptr, &mine})), "fcfs+mine+fair");
  EXPECT_EQ(text_of(with(parsed("fcfs+phase-shift"), {&turns, nullptr})), "turns+phase-shift");
  EXPECT_EQ(text_of(with(parsed("fcfs"), {})), "fcfs");
}

TEST(Combinations, ARefusalSaysWhatIsWrong) {
  EXPECT_EQ(refusal("phase-shfit"),
            "unknown policy 'phase-shfit': did you mean 'phase-shift'? there are: " + testing::names_of(policies()) +
                ", " + testing::names_of(core_policies()) + ", " + testing::names_of(server_policies()) +
                ", none; several are joined by '+'");
  EXPECT_EQ(refusal("fcfs+interfere"),
            "policies 'fcfs' and 'interfere' are both for access to targets: name one of them");
  EXPECT_EQ(refusal("phase-shift+period-coupling"),
            "policies 'phase-shift' and 'period-coupling' are both against interference: name one of them");
  EXPECT_EQ(refusal("fair+fair"), "policies 'fair' and 'fair' are both for sharing out cores: name one of them");
  EXPECT_EQ(refusal("none+fair"), "policy 'none' with others in 'none+fair': name it alone, or leave it out");
  EXPECT_NE(refusal("fair+").find("a policy without a name"), std::string::npos);
  EXPECT_NE(refusal("").find("a policy without a name"), std::string::npos);
  EXPECT_LT(refusal(std::string(100000, 'x')).size(), 400u);
  EXPECT_FALSE(parse_combination(std::string(100000, '+')).ok());
}

}  // namespace
}  // namespace hocket::policy
