#include "sim/simulated_servers.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "event/server_map.hpp"

namespace hocket::sim {
namespace {

using std::chrono::milliseconds;

constexpr Time begin_time = time_from_ns(1'000'000'000);
Time after_begin(double s) { return begin_time + from_s(s); }

// Two targets: the first has four servers, the second one.
Scenario two_targets() {
  Scenario scenario;
  scenario.targets = {{"disk", 1000}, {"other", 1000}};
  for (const char* name : {"s1", "s2", "s3", "s4"}) scenario.targets[0].servers.push_back({name, 0.01, 100});
  scenario.targets[1].servers.push_back({"t1", 0.01, 100});
  scenario.applications.resize(2);
  return scenario;
}

event::NewServerMap map_of(const Scenario& scenario, std::int64_t epoch, const std::string& aside) {
  std::vector<event::ServerMap::MappedServer> all;
  for (const TargetSpec& target : scenario.targets) {
    for (const ServerSpec& server : target.servers)
      all.push_back(
          {server.name, SimulatedServers::directory_of(target), SimulatedServers::address, server.name == aside});
  }
  return {epoch, event::text_of(all)};
}

TEST(ServerWork, EachClientSendsEachServerAtLeastOneRequest) {
  const ServerPart large = part_of_each(1000, 10, 8, 5);  // 20 bytes of each client, in requests of 8, 8 and 4
  EXPECT_EQ(large.requests, 30);
  EXPECT_EQ(large.bytes, 200);
  EXPECT_EQ(part_of_each(1000, 10, 1e6, 5).requests, 10);
  EXPECT_EQ(part_of_each(3 * 0.1 * 30, 1, 0.1 * 30, 1).requests, 3);  // no request for a rounding error
}

TEST(ServerWork, AServerNeedsTimeForEachRequestAndEachByte) {
  const ServerSpec server{"s", 0.01, 100};
  EXPECT_DOUBLE_EQ(seconds_of(server, {10, 50}, 0), 0.6);
  EXPECT_DOUBLE_EQ(seconds_of(server, {10, 50}, 0.09), 1.5);
  EXPECT_DOUBLE_EQ(seconds_of({"s", 0.01, 0}, {10, 50}, 0), 0.1);
}

TEST(SimulatedServersTest, TheSlowestServerGivesTheRate) {
  Scenario scenario = two_targets();
  scenario.targets[0].servers[2].service_s = 0.05;
  SimulatedServers servers{scenario, begin_time};
  EXPECT_FALSE(servers.uses(0));
  servers.begin(0, 0, 400, 10, 100);  // 10 requests each
  EXPECT_TRUE(servers.uses(0));
  EXPECT_DOUBLE_EQ(servers.rate(0), 400 / 1.5);  // 10 × 50 ms, and 100 bytes at 100 bytes/s
  servers.begin(0, 0, 40, 10, 100);
  EXPECT_DOUBLE_EQ(servers.rate(0), 40 / 0.6);
  servers.begin(1, 0, 40, 10, 100);
  EXPECT_DOUBLE_EQ(servers.rate(0), 40 / 1.2);  // two divide each server's time
  servers.end(1);
  servers.begin(1, 1, 40, 10, 100);  // the other target's server
  EXPECT_DOUBLE_EQ(servers.rate(0), 40 / 0.6);
}

TEST(SimulatedServersTest, ATargetWithoutServersIsWrittenPastThem) {
  Scenario scenario = two_targets();
  scenario.targets[1].servers.clear();
  SimulatedServers servers{scenario, begin_time};
  servers.begin(0, 1, 400, 10, 100);
  EXPECT_FALSE(servers.uses(0));
  EXPECT_EQ(servers.rate(0), std::numeric_limits<double>::infinity());
  servers.end(0);
  EXPECT_FALSE(servers.next_report(begin_time));
}

TEST(SimulatedServersTest, AMapIsAdoptedOnceAndLeavesOutWhatIsSetAside) {
  const Scenario scenario = two_targets();
  SimulatedServers servers{scenario, begin_time};
  EXPECT_FALSE(servers.adopt(0));
  servers.receive(0, map_of(scenario, 4, "s2"));
  servers.begin(0, 0, 1200, 10, 100);
  EXPECT_DOUBLE_EQ(servers.rate(0), 1200 / 3.1);  // not adopted yet
  EXPECT_EQ(servers.adopt(0), 4);
  EXPECT_FALSE(servers.adopt(0));
  EXPECT_DOUBLE_EQ(servers.rate(0), 1200 / 3.1);  // an operation ends in its epoch
  servers.begin(0, 0, 1200, 10, 100);
  EXPECT_DOUBLE_EQ(servers.rate(0), 1200 / 4.1);
  servers.begin(1, 0, 1200, 10, 100);  // the other application still has all
  EXPECT_DOUBLE_EQ(servers.rate(1), 1200 / (2 * 3.1));
}

TEST(SimulatedServersTest, LoadsAddUpWhileTheyLast) {
  Scenario scenario = two_targets();
  scenario.targets[0].servers[0].loads = {{1, 3, 0.1}, {2, 0, 0.2}};
  SimulatedServers servers{scenario, begin_time};
  servers.begin(0, 0, 4, 1, 100);
  EXPECT_EQ(servers.next_load_change(), after_begin(1));
  EXPECT_DOUBLE_EQ(4 / servers.rate(0), 0.02);
  for (const auto& [time, delay] : {std::pair{1.0, 0.1}, {2.0, 0.3}, {3.0, 0.2}}) {
    servers.take_load(after_begin(time));
    EXPECT_DOUBLE_EQ(4 / servers.rate(0), 0.02 + delay) << time;
  }
  EXPECT_FALSE(servers.next_load_change());
}

TEST(SimulatedServersTest, ReportsHaveWholeRequestsAndTheirTime) {
  Scenario scenario = two_targets();
  scenario.targets[0].servers[3].loads = {{0, 0, 0.04}};
  SimulatedServers servers{scenario, begin_time};
  servers.take_load(begin_time);
  servers.begin(0, 0, 400, 10, 1000);
  servers.count(0, 100);  // two and a half of ten requests each
  const auto healthy = servers.report(0);
  ASSERT_TRUE(healthy);
  EXPECT_EQ(healthy->operations, 2);
  EXPECT_EQ(healthy->bytes, 20);
  EXPECT_EQ(healthy->service, milliseconds{220});
  const auto loaded = servers.report(3);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->service, milliseconds{300});
  servers.count(0, 20);  // half a request: with the rest of before, one
  ASSERT_TRUE(servers.report(0));
  EXPECT_FALSE(servers.report(0));
  EXPECT_FALSE(servers.report(4));  // a server of the other target
}

TEST(SimulatedServersTest, ReportsEndIfNothingChanges) {
  const Scenario scenario = two_targets();
  SimulatedServers servers{scenario, begin_time};
  EXPECT_FALSE(servers.next_report(begin_time));
  servers.begin(0, 0, 4e6, 10, 1000);
  Time now = begin_time;
  int rounds = 0;
  while (const auto due = servers.next_report(now)) {
    ASSERT_LT(rounds, 100);
    EXPECT_GE(*due, now + SimulatedServers::report_every);
    now = *due;
    servers.reported(now, 4);
    ++rounds;
  }
  EXPECT_EQ(rounds, SimulatedServers::reports_after_change);
  servers.end(0);
  EXPECT_TRUE(servers.next_report(now));  // what is left
  servers.reported(now, 0);
  EXPECT_FALSE(servers.next_report(now));
}

}  // namespace
}  // namespace hocket::sim
