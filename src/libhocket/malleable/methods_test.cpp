#include "malleable/methods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace hocket::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
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
  EXPECT_EQ(result.settings.methods.text(), "merge parallel, p2p blocking");
  EXPECT_EQ(result.settings.processes, 0);
  EXPECT_TRUE(result.settings.schedule.empty());
  EXPECT_TRUE(result.complaints.empty());
}

TEST(Methods, AreMadeFromTheirNames) {
  const Methods chosen{Spawn::baseline,    SpawnStrategy::single, Worlds::node,
                       Placement::compact, Method::rma_lock,      Strategy::wait_targets};
  std::string text;
  for (const std::string_view name : chosen.names()) text += (text.empty() ? "" : "/") + std::string(name);
  EXPECT_EQ(text, "baseline/single/node/compact/rma-lock/wait-targets");
  const auto parsed = parse_methods(text, {});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed.value().names(), chosen.names());
}

TEST(Methods, AreChosenByName) {
  const Read result = read({{"HOCKET_SPAWN", "baseline"},
                            {"HOCKET_SPAWN_STRATEGY", "single-async"},
                            {"HOCKET_WORLDS", "node"},
                            {"HOCKET_REDISTRIBUTION", "rma-lockall"},
                            {"HOCKET_REDISTRIBUTION_STRATEGY", "wait-targets"},
                            {"HOCKET_PROCESSES", "4"},
                            {"HOCKET_RESIZE_MAX_S", "2.5"},
                            {"HOCKET_RESIZE_WAIT_S", "0.5"},
                            {"HOCKET_PLACEMENT", "compact"},
                            {"HOCKET_BALANCE", "0"}});
  EXPECT_EQ(result.settings.methods.text(), "baseline single-async, rma-lockall wait-targets");
  EXPECT_EQ(result.settings.methods.worlds, Worlds::node);
  EXPECT_EQ(result.settings.processes, 4);
  EXPECT_DOUBLE_EQ(to_s(result.settings.limit), 2.5);
  EXPECT_EQ(result.settings.balance, Balance::never);
  EXPECT_DOUBLE_EQ(to_s(result.settings.wait_at_end), 0.5);
  EXPECT_EQ(result.settings.methods.placement, Placement::compact);
  EXPECT_TRUE(result.complaints.empty());
}

TEST(Methods, UnknownNamesAreToldWithTheKnownOnes) {
  const Read result = read({{"HOCKET_SPAWN", "fork"}});
  EXPECT_THAT(result.complaints, ElementsAre("HOCKET_SPAWN='fork' is none of merge, baseline: using merge"));
}

TEST(Methods, AScheduleIsReadInAnyOrder) {
  const auto is = [](std::int64_t processes, const char* methods) {
    return AllOf(Field(&ScheduledResize::processes, processes), Field(&ScheduledResize::methods, methods));
  };
  EXPECT_THAT(read({{"HOCKET_RESIZE", "20:2,10:4"}}).settings.schedule,
              ElementsAre(Pair(10, is(4, "")), Pair(20, is(2, ""))));
  EXPECT_THAT(read({{"HOCKET_RESIZE", "20:2:node,10:4:baseline/async"}}).settings.schedule,
              ElementsAre(Pair(10, is(4, "baseline/async")), Pair(20, is(2, "node"))));
}

TEST(Methods, OfOneResizeReplaceThoseOfTheJobThatTheyName) {
  Methods job;
  job.redistribution = Method::collective;
  const auto chosen = parse_methods("node/wait-sources/baseline/single-async/spread", job);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen.value().text(), "baseline single-async, collective wait-sources");
  EXPECT_EQ(chosen.value().worlds, Worlds::node);
  EXPECT_EQ(chosen.value().placement, Placement::spread);
  EXPECT_EQ(parse_methods("", job).value().text(), job.text());
}

TEST(Methods, OfOneResizeAreRefusedWithTheWrongName) {
  EXPECT_THAT(parse_methods("merge/fork", {}).error().text, HasSubstr("'fork' is no method"));
  EXPECT_EQ(parse_methods("merge/p2p/baseline", {}).error().text,
            "'merge' and 'baseline' exclude each other: give one");
  EXPECT_EQ(parse_methods("p2p/p2p", {}).error().text, "'p2p' and 'p2p' exclude each other: give one");
  EXPECT_FALSE(parse_methods("merge//p2p", {}));
}

TEST(Methods, AWrongScheduleIsNone) {
  for (const char* text :
       {"x", "10", "10:", ":4", "10:0", "-1:4", "10:4;20:2", "10:4,,20:2", "10:4:", "10:4:fork", "10:4:plain:node"}) {
    const Read result = read({{"HOCKET_RESIZE", text}});
    EXPECT_TRUE(result.settings.schedule.empty()) << text;
    ASSERT_EQ(result.complaints.size(), 1U) << text;
    EXPECT_THAT(result.complaints[0], HasSubstr(text));
  }
}

TEST(Methods, WrongNumbersAreToldAndNotUsed) {
  for (const char* key : {"HOCKET_PROCESSES", "HOCKET_RESIZE_MAX_S", "HOCKET_RESIZE_WAIT_S"}) {
    for (const char* text : {"0", "-1", "many", "3x"}) {
      const Read result = read({{key, text}});
      EXPECT_EQ(result.settings.processes, 0);
      EXPECT_DOUBLE_EQ(to_s(result.settings.limit), 60);
      EXPECT_EQ(result.settings.wait_at_end, Duration{});
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
