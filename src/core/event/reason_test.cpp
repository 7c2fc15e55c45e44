#include "event/reason.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "event/properties.hpp"
#include "event/random_event.hpp"

namespace hocket::event {
namespace {

// Calls `visit` with decisions whose reasons and numbers are random, until each kind of reason came often.
template <class Visit>
void each_decision(Visit visit) {
  RandomEvents random{5};
  std::map<std::size_t, int> seen;
  const auto often = [](const auto& kind) { return kind.second >= 5; };
  while (seen.size() < std::variant_size_v<Reason> || !std::all_of(seen.begin(), seen.end(), often)) {
    const Event event = random.next();
    const auto* decision = std::get_if<Decision>(&event.body);
    if (decision == nullptr) continue;
    ++seen[decision->reason.index()];
    visit(*decision);
  }
}

TEST(Reason, ComesBackFromItsProperties) {
  each_decision(
      [](const Decision& decision) { EXPECT_EQ(reason_of(properties_of(decision.reason)), decision.reason); });
}

TEST(Reason, LeavesOutWhatSaysNothing) {
  const Properties written = properties_of(AccessChoice{"disk"});
  EXPECT_EQ(written, (Properties{{"kind", std::string{"access"}}, {"target", std::string{"disk"}}}));
  EXPECT_TRUE(properties_of(Reason{}).empty());
}

TEST(Reason, OfALaterVersionIsNone) {
  EXPECT_TRUE(is_none(reason_of({{"kind", std::string{"weather"}}, {"cores", std::int64_t{3}}})));
  EXPECT_TRUE(is_none(reason_of({{"kind", true}})));
  const Reason partly =
      reason_of({{"kind", std::string{"equal-part"}}, {"cores", std::string{"many"}}, {"later", 1.5}});
  EXPECT_EQ(std::get<EqualPart>(partly), EqualPart{});
}

TEST(Reason, LeavesOutNumbersThatAreNotFinite) {
  const Reason endless = NotWorthIt{std::numeric_limits<double>::infinity(), 2, 3};
  const Properties written = properties_of(endless);
  EXPECT_EQ(find(written, "cost_s"), nullptr);
  const auto back = std::get<NotWorthIt>(reason_of(written));
  EXPECT_TRUE(std::isnan(back.cost_s));
  EXPECT_EQ(back.saved_s, 2);
  EXPECT_EQ(properties_of(Reason{back}), written);
}

// Filters see a decision's fields, and those of its reason and obstacle, in one list.
TEST(Reason, HasKeysThatNoOtherFieldOfADecisionHas) {
  each_decision([](const Decision& decision) {
    std::set<std::string> keys;
    for (const auto& [key, value] : properties_of(Event{{}, {}, decision})) {
      EXPECT_TRUE(keys.insert(key).second) << key;
    }
    EXPECT_EQ(keys.contains("reason"), !is_none(decision.reason));
    EXPECT_EQ(keys.contains("obstacle"), !is_none(decision.obstacle));
  });
  Decision left;
  left.obstacle = CoresMissing{3, 1};
  const Properties properties = properties_of(Event{{}, {}, left});
  const Value* needed = find(properties, "obstacle_needed");
  ASSERT_NE(needed, nullptr);
  EXPECT_EQ(*needed, Value{std::int64_t{3}});
}

TEST(Reason, HasAKindOfItsOwn) {
  std::map<std::string, std::size_t> kinds;
  each_decision([&kinds](const Decision& decision) {
    if (is_none(decision.reason)) return;
    const std::string kind = std::get<std::string>(properties_of(decision.reason).front().second);
    const auto [place, is_new] = kinds.emplace(kind, decision.reason.index());
    EXPECT_EQ(place->second, decision.reason.index()) << kind;
  });
}

}  // namespace
}  // namespace hocket::event
