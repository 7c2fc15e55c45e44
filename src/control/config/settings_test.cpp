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

}  // namespace
}  // namespace hocket::config
