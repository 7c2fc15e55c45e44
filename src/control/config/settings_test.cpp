#include "config/settings.hpp"

#include <gtest/gtest.h>

namespace hocket::config {
namespace {

DaemonSettings of_trace(const event::Properties& header, std::int64_t version) {
  const auto settings = from_trace(header, version);
  EXPECT_TRUE(settings.ok()) << (settings ? "" : settings.error().text);
  return settings ? settings.value() : DaemonSettings{};
}

TEST(SettingsOfATrace, HaveTheDefaultsOfItsVersion) {
  const DaemonSettings first = of_trace({}, 1);
  EXPECT_GT(first.turn_s, 1e7) << "no turn ended";
  EXPECT_EQ(first.slow_server, 0);
  EXPECT_FALSE(first.tell_waits);
  const DaemonSettings second = of_trace({}, 2);
  EXPECT_EQ(second.turn_s, DaemonSettings{}.turn_s);
  EXPECT_EQ(second.slow_server, DaemonSettings{}.slow_server);
  EXPECT_TRUE(second.tell_waits);
}

TEST(SettingsOfATrace, AreThoseOfTheHeaderWhateverItsVersion) {
  DaemonSettings settings;
  settings.policy = "fcfs";
  settings.turn_s = 7;
  settings.cores = 12;
  settings.tell_waits = true;
  for (const std::int64_t version : {1, 2}) {
    EXPECT_EQ(for_trace(of_trace(for_trace(settings), version)), for_trace(settings)) << version;
  }
}

// Returns what is wrong with the value of a key; "" if nothing is.
std::string wrong_with(const std::string& key, const std::string& value) {
  DaemonSettings settings;
  const Status status = set(settings, key, value, "--x");
  return status ? std::string{} : status.error().text;
}

TEST(Settings, NameARequestSchedulerThatThereIs) {
  EXPECT_EQ(wrong_with("coordinator.request_scheduler", "wfq"), "");
  EXPECT_EQ(wrong_with("coordinator.request_scheduler", ""), "");
  EXPECT_EQ(wrong_with("coordinator.request_scheduler", "wffq"),
            "--x: coordinator.request_scheduler: unknown request scheduler 'wffq': did you mean 'wfq'?");
}

TEST(Settings, HaveWeightsOfApplications) {
  DaemonSettings settings;
  ASSERT_TRUE(set(settings, "coordinator.application_weights", std::string{"solver=4 a=b=1000"}, "--x"));
  using Weights = std::map<std::string, std::int64_t, std::less<>>;
  EXPECT_EQ(for_coordinator(settings).application_weights, (Weights{{"solver", 4}, {"a=b", 1000}}));
  for (const std::string word : {"solver", "=4", "solver=", "solver=0", "solver=1001", "solver=-1", "solver=4x"}) {
    EXPECT_EQ(wrong_with("coordinator.application_weights", word),
              "--x: coordinator.application_weights: '" + word +
                  "' is no weight of an application: write APP=WEIGHT, with a weight of 1 to 1000");
  }
  EXPECT_EQ(wrong_with("coordinator.application_weights", "a=1 a=2"),
            "--x: coordinator.application_weights: application 'a' is named twice");
}

TEST(SizeLimits, AreNumbersOfProcessesByName) {
  DaemonSettings settings;
  ASSERT_TRUE(set(settings, "coordinator.size_limits", std::string{"a=4  b=c=12"}, "test").ok());
  const std::map<std::string, std::int64_t, std::less<>> expected{{"a", 4}, {"b=c", 12}};
  EXPECT_EQ(for_coordinator(settings).core.size_limits, expected);
  EXPECT_EQ(for_trace(of_trace(for_trace(settings), 2)), for_trace(settings));
  for (const char* text : {"a", "=4", "a=", "a=0", "a=-1", "a=4x", "a=2 a=3"}) {
    EXPECT_FALSE(set(settings, "coordinator.size_limits", std::string{text}, "test").ok()) << text;
  }
}

}  // namespace
}  // namespace hocket::config
