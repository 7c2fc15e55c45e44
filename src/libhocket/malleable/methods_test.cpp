#include "malleable/methods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace hocket::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Read {
  ResizeSettings settings;
  std::vector<std::string> complaints;
};

Read read(const std::map<std::string, std::string>& environment) {
  Read result;
  result.settings = read_resize_settings(
      [&](const char* key) -> const char* {
        const auto found = environment.find(key);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      [&](std::string_view line) { result.complaints.emplace_back(line); });
  return result;
}

TEST(Methods, AreTheDefaultsWhereNothingIsSet) {
  const Read result = read({});
  EXPECT_EQ(result.settings.methods.text(), "merge plain, p2p blocking");
  EXPECT_EQ(result.settings.processes, 0);
  EXPECT_TRUE(result.settings.schedule.empty());
  EXPECT_TRUE(result.complaints.empty());
}

TEST(Methods, AreChosenByName) {
  const Read result = read({{"HOCKET_SPAWN", "baseline"},
                            {"HOCKET_SPAWN_STRATEGY", "single-async"},
                            {"HOCKET_WORLDS", "node"},
                            {"HOCKET_REDISTRIBUTION", "rma-lockall"},
                            {"HOCKET_REDISTRIBUTION_STRATEGY", "wait-targets"},
                            {"HOCKET_PROCESSES", "4"},
                            {"HOCKET_RESIZE_MAX_S", "2.5"},
                            {"HOCKET_BALANCE", "0"}});
  EXPECT_EQ(result.settings.methods.text(), "baseline single-async, rma-lockall wait-targets");
  EXPECT_EQ(result.settings.methods.worlds, Worlds::node);
  EXPECT_EQ(result.settings.processes, 4);
  EXPECT_DOUBLE_EQ(to_s(result.settings.limit), 2.5);
  EXPECT_EQ(result.settings.balance, Balance::never);
  EXPECT_TRUE(result.complaints.empty());
}

TEST(Methods, UnknownNamesAreToldWithTheKnownOnes) {
  const Read result = read({{"HOCKET_SPAWN", "fork"}});
  EXPECT_THAT(result.complaints, ElementsAre("HOCKET_SPAWN='fork' is none of merge, baseline: using merge"));
}

TEST(Methods, AScheduleIsReadInAnyOrder) {
  EXPECT_THAT(read({{"HOCKET_RESIZE", "20:2,10:4"}}).settings.schedule, ElementsAre(Pair(10, 4), Pair(20, 2)));
}

TEST(Methods, AWrongScheduleIsNone) {
  for (const char* text : {"x", "10", "10:", ":4", "10:0", "-1:4", "10:4;20:2", "10:4,,20:2"}) {
    const Read result = read({{"HOCKET_RESIZE", text}});
    EXPECT_TRUE(result.settings.schedule.empty()) << text;
    ASSERT_EQ(result.complaints.size(), 1U) << text;
    EXPECT_THAT(result.complaints[0], HasSubstr(text));
  }
}

TEST(Methods, WrongNumbersAreToldAndNotUsed) {
  for (const char* key : {"HOCKET_PROCESSES", "HOCKET_RESIZE_MAX_S"}) {
    for (const char* text : {"0", "-1", "many", "3x"}) {
      const Read result = read({{key, text}});
      EXPECT_EQ(result.settings.processes, 0);
      EXPECT_DOUBLE_EQ(to_s(result.settings.limit), 60);
      EXPECT_EQ(result.complaints.size(), 1U) << key << text;
    }
  }
}

TEST(Methods, ArraysAreBalancedAlwaysUnlessTheUserSaysLess) {
  EXPECT_EQ(read({}).settings.balance, Balance::always);
  EXPECT_EQ(read({{"HOCKET_BALANCE", "resize"}}).settings.balance, Balance::at_resizes);
  EXPECT_EQ(read({{"HOCKET_BALANCE", "1"}}).settings.balance, Balance::always);
  const Read result = read({{"HOCKET_BALANCE", "never"}});
  EXPECT_EQ(result.settings.balance, Balance::always);
  EXPECT_THAT(result.complaints, ElementsAre("HOCKET_BALANCE='never' is none of 0, resize, and 1: using 1"));
}

TEST(Methods, EachThreadedStrategyHasOneThatWaits) {
  Methods methods;
  for (const auto& [threaded, waiting] : {std::pair{SpawnStrategy::async, SpawnStrategy::plain},
                                          {SpawnStrategy::single_async, SpawnStrategy::single},
                                          {SpawnStrategy::parallel_async, SpawnStrategy::parallel},
                                          {SpawnStrategy::join, SpawnStrategy::join}}) {
    methods.spawn_strategy = threaded;
    EXPECT_EQ(methods.foreground(), waiting);
  }
}

}  // namespace
}  // namespace hocket::runtime
