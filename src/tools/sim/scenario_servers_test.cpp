#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/scenario_testing.hpp"

namespace hocket::sim {
namespace {

using testing::read;

const std::string good_servers = R"(name = "good"
[platform]
nodes = 4
cores_per_node = 36
[[targets]]
name = "gpfs"
bandwidth_bytes_per_s = 1e10
[[targets]]
name = "queue"
bandwidth_bytes_per_s = 1e10
sharing = "queued"
[[servers]]
name = "s"
count = 3
service_s = 1e-4
bandwidth_bytes_per_s = 2e9
[[load]]
server = "s.2"
from_s = 10
delay_s = 512e-6
[[applications]]
name = "A"
processes = 64
iterations = 40
iterations_per_phase = 10
iteration_s = 1
io_bytes = 1e9
request_bytes = 16384
)";

std::string with(const std::string& line, const std::string& other) {
  std::string text = good_servers;
  return text.replace(text.find(line), line.size(), other);
}

TEST(ScenarioServersTest, ReadsServersAndTheirLoad) {
  const auto plan = read(good_servers);
  ASSERT_TRUE(plan) << plan.error().text;
  const auto& servers = plan.value().scenario.targets[0].servers;
  ASSERT_EQ(servers.size(), 3U);
  EXPECT_EQ(servers[0].name, "s");
  EXPECT_EQ(servers[1].name, "s.2");
  EXPECT_EQ(servers[1].service_s, 1e-4);
  EXPECT_EQ(servers[1].bandwidth, 2e9);
  EXPECT_TRUE(servers[0].loads.empty());
  ASSERT_EQ(servers[1].loads.size(), 1U);
  EXPECT_EQ(servers[1].loads[0].from_s, 10);
  EXPECT_EQ(servers[1].loads[0].to_s, 0);
  EXPECT_EQ(servers[1].loads[0].delay_s, 512e-6);
  EXPECT_EQ(plan.value().scenario.applications[0].request_bytes, 16384);
}

// What is wrong, instead of which line, and what the error says.
struct Wrong {
  std::string line, other, told;
};

class WrongServers : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongServers, IsOneLineThatSaysWhatToDo) {
  const auto plan = read(with(GetParam().line, GetParam().other));
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().text, ::testing::HasSubstr(GetParam().told));
  EXPECT_THAT(plan.error().text, ::testing::Not(::testing::HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, WrongServers,
    ::testing::Values(
        Wrong{"count = 3", "count = 1025", "1024"}, Wrong{"count = 3", "count = 0", "count"},
        Wrong{"name = \"s\"", "name = \"s 1\"", "letters, digits"}, Wrong{"name = \"s\"", "name = \"\"", "letters"},
        Wrong{"count = 3", "target = \"gfps\"", "did you mean 'gpfs'"},
        Wrong{"service_s = 1e-4", "service_s = -1", "service_s"}, Wrong{"count = 3", "cuont = 3", "cuont"},
        Wrong{"server = \"s.2\"", "server = \"s.4\"", "did you mean 's"}, Wrong{"delay_s = 512e-6", "", "delay_s"},
        Wrong{"from_s = 10", "from_s = 10\nto_s = 10", "before it begins"},
        Wrong{"iteration_s = 1", "iteration_s = 1\ntarget = \"queue\"", "no [[servers]]"},
        Wrong{"[[load]]", "[[servers]]\nname = \"s\"\n[[load]]", "of that name already"},
        Wrong{"[[load]]", "[[servers]]\nname = \"t\"\ncount = 1022\n[[load]]", "more servers than"},
        Wrong{"count = 3", "count = 3\ntarget = \"queue\"", "no [[servers]]"}));

TEST(ScenarioServersTest, QueuedTargetsTakeNoServers) {
  std::string text = with("count = 3", "count = 3\ntarget = \"queue\"");
  text.replace(text.find("iteration_s = 1"), 15, "iteration_s = 1\ntarget = \"queue\"");
  const auto plan = read(text);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().text, ::testing::HasSubstr("queued"));
}

TEST(ScenarioServersTest, LoadNeedsServers) {
  std::string text = good_servers;
  text.erase(text.find("[[servers]]"), text.find("[[load]]") - text.find("[[servers]]"));
  const auto plan = read(text);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().text, ::testing::HasSubstr("there are no [[servers]]"));
}

}  // namespace
}  // namespace hocket::sim
