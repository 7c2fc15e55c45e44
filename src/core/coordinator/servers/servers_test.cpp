// Tests the server map case by case. Random and hostile orders: servers_property_test.cpp.
#include "coordinator/servers/servers.hpp"

#include <gtest/gtest.h>

#include <map>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"

namespace hocket::coordinator {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::Lines;

class ServersTest : public testing::Script {
 protected:
  // Member 11 is s1, 12 is s2, …
  Lines server(std::int64_t ms, std::uint64_t number) { return server(ms, 10 + number, "s" + std::to_string(number)); }
  Lines server(std::int64_t ms, std::uint64_t member, const std::string& name) {
    return at(ms, member, event::Server{name, "unix:/" + name, "/scratch", 1 << 20, false, 77});
  }
  Lines set(std::int64_t ms, const std::string& name, const std::string& action) {
    return at(ms, tool, event::SetServer{name, action});
  }
  Lines assign(std::int64_t ms, const std::string& servers, const std::string& application) {
    return at(ms, tool, event::SetServer{servers, "assign", application});
  }
  std::string own_servers(std::uint64_t app) const {
    return coordinator.servers().own_servers_of(*coordinator.cluster().find(AppId{app}));
  }
  Lines load(std::int64_t ms, std::uint64_t number, std::int64_t service_us) {
    return at(ms, 10 + number, event::ServerLoad{10, 10 << 20, microseconds{10 * service_us}, 3, 4096, {}});
  }
  // Sends reports of all `servers` until s1, which takes 2 ms for each operation, is found slow. Returns the commands
  // of that event.
  Lines slow_from(std::int64_t ms, std::uint64_t servers = 4) {
    Lines last;
    for (int i = 0; i < 3; ++i) {
      for (std::uint64_t peer = 2; peer <= servers; ++peer) EXPECT_EQ(load(ms + i, peer, 200), Lines{});
      EXPECT_EQ(last, Lines{});
      last = load(ms + i, 1, 2000);
    }
    return last;
  }
  std::string states(std::int64_t ms = 0) const {
    std::string text;
    for (const event::IoServer& row : coordinator.servers().describe(Time{} + milliseconds{ms})) {
      text += row.server + " " + row.state + " " + std::to_string(row.epoch) + "; ";
    }
    return text;
  }

  // Adds a server that promises a heartbeat each second. Member 11 is s1, with process 701, and so on.
  Lines beating(std::int64_t ms, std::uint64_t number, bool write_behind = false) {
    const std::string name = "s" + std::to_string(number);
    return at(ms, 10 + number,
              event::Server{name, "unix:/" + name, "/scratch", 1 << 20, write_behind,
                            700 + static_cast<std::int64_t>(number), std::chrono::seconds{1}});
  }
  Lines beat(std::int64_t ms, std::uint64_t number) { return at(ms, 10 + number, event::ServerLoad{}); }
  Lines ended(std::int64_t ms, std::uint64_t number, std::int64_t pid = 0) {
    const auto own = 700 + static_cast<std::int64_t>(number);
    return at(ms, 0, event::ServerEnded{"s" + std::to_string(number), pid == 0 ? own : pid});
  }
  Lines stored(std::int64_t ms, std::uint64_t number, std::int64_t epoch) {
    return at(ms, 10 + number, event::MapStored{epoch});
  }

  static constexpr std::uint64_t tool = 99;
};

TEST_F(ServersTest, EveryMemberOfEveryApplicationHearsOfEachMap) {
  EXPECT_EQ(hello(1), Lines{"1 WELCOME app 1 app fcfs"}) << "there is no map";
  EXPECT_EQ(server(1, 1), Lines{"1 SERVER_MAP 1 s1"});
  EXPECT_EQ(hello(2), (Lines{"2 WELCOME app 1 app fcfs", "2 SERVER_MAP 1 s1"}));
  EXPECT_EQ(hello(3, "other"), (Lines{"3 WELCOME app 2 app-2 fcfs", "3 SERVER_MAP 1 s1"}));
  EXPECT_EQ(server(2, 2), (Lines{"1 SERVER_MAP 2 s1 s2", "2 SERVER_MAP 2 s1 s2", "3 SERVER_MAP 2 s1 s2"}));
  EXPECT_EQ(at(3, 50, event::Hello{"", "hocket ls", "", "", "0.1", 5, 0}), Lines{"50 WELCOME app 0  fcfs"});
}

TEST_F(ServersTest, OneThatIsLostOrLeavesComesOutAtOnce) {
  hello(1);
  for (std::uint64_t i = 1; i <= 3; ++i) server(1, i);
  EXPECT_EQ(at(2, 11, event::Lost{"connection closed"}), Lines{"1 SERVER_MAP 4 s2 s3"});
  EXPECT_EQ(at(2, 12, event::Bye{}), Lines{"1 SERVER_MAP 5 s3"});
  EXPECT_EQ(states(), "s1 lost 4; s3 up 3; ");
  EXPECT_EQ(server(3, 21, "s1"), Lines{"1 SERVER_MAP 6 s3 s1"}) << "started again";
  EXPECT_EQ(states(), "s3 up 3; s1 up 6; ");
}

TEST_F(ServersTest, ToolsDrainAndAdd) {
  hello(1);
  for (std::uint64_t i = 1; i <= 2; ++i) server(1, i);
  EXPECT_EQ(set(2, "s1", "drain"), Lines{"1 SERVER_MAP 3 s2"});
  EXPECT_EQ(set(2, "s1", "drain"), Lines{}) << "it is";
  EXPECT_EQ(set(2, "s2", "drain"), Lines{"1 SERVER_MAP 4"}) << "the operator may empty the map";
  EXPECT_EQ(states(), "s1 drained 3; s2 drained 4; ");
  EXPECT_EQ(set(3, "s2", "add"), Lines{"1 SERVER_MAP 5 s2"});
  EXPECT_EQ(set(3, "s1", "add"), Lines{"1 SERVER_MAP 6 s1 s2"}) << "in the order in which they came";
  at(4, 11, event::Lost{});
  EXPECT_EQ(set(5, "s1", "add"), Lines{"99 REFUSED 's1' is lost: start a server again"});
  EXPECT_EQ(set(5, "s9", "add"), Lines{"99 REFUSED no server is called 's9'; 'hocket servers' lists them"});
  EXPECT_EQ(set(5, "s2", "up"), Lines{"99 REFUSED SET_SERVER: unknown action 'up': \"drain\", \"add\", "
                                      "\"ended\", \"assign\", \"scheduler\" or \"weight\""});
}

TEST_F(ServersTest, RefusesWhatIsNoServer) {
  hello(1);
  server(1, 1);
  EXPECT_EQ(server(1, 12, "s1"), Lines{"12 REFUSED SERVER: a server called 's1' runs already (pid 77 on node1): choose "
                                       "another name"});
  EXPECT_EQ(server(1, 11, "s2"), Lines{"11 REFUSED SERVER: a member can be one server only, and sends SERVER once"});
  for (const char* name : {"", "a b", "a\nb", "ü", "s/1"}) EXPECT_EQ(server(1, 12, name).size(), 1U) << name;
  EXPECT_EQ(at(1, 12, event::Server{"s2", "unix:/x", "scratch", 0, false, 1}),
            Lines{"12 REFUSED SERVER: 'directory' of 's2' is no absolute path"});
  EXPECT_EQ(at(1, 12, event::Server{"s2", "", "/scratch", 0, false, 1}),
            Lines{"12 REFUSED SERVER: 'addresses' of 's2' is not one line with at least one address"});
  const event::Server long_one{"s2", "unix:/x", "/" + std::string(event::longest_server_map, 'x'), 0, false, 1};
  EXPECT_EQ(at(1, 12, long_one), Lines{"12 REFUSED SERVER: 's2' is one too many: the map would not fit a message; stop "
                                       "others first"});
  EXPECT_EQ(states(), "s1 up 1; ");
}

TEST_F(ServersTest, ASlowServerIsTakenOutAndTriedAgain) {
  hello(1);
  for (std::uint64_t i = 1; i <= 4; ++i) server(1, i);
  EXPECT_EQ(deadline_ms(), -1);
  EXPECT_EQ(slow_from(1000), (Lines{"0 SLOW_IO_SERVER s1 for 10000, 2000 to 200", "1 SERVER_MAP 5 s2 s3 s4"}));
  EXPECT_EQ(states(), "s1 slow 5; s2 up 2; s3 up 3; s4 up 4; ");
  EXPECT_EQ(deadline_ms(), 11002);
  EXPECT_EQ(tick(11001), Lines{}) << "too early";
  EXPECT_EQ(tick(11002), Lines{"1 SERVER_MAP 6 s1 s2 s3 s4"});
  EXPECT_EQ(deadline_ms(), -1);
}

TEST_F(ServersTest, TheHoldOffDoublesUntilItIsForgiven) {
  for (std::uint64_t i = 1; i <= 4; ++i) server(1, i);
  EXPECT_EQ(slow_from(0).at(0), "0 SLOW_IO_SERVER s1 for 10000, 2000 to 200");
  tick(20'000);
  EXPECT_EQ(slow_from(20'000).at(0), "0 SLOW_IO_SERVER s1 for 20000, 2000 to 200");
  tick(50'000);
  EXPECT_EQ(slow_from(50'000).at(0), "0 SLOW_IO_SERVER s1 for 40000, 2000 to 200");
  const std::int64_t back = 90'002;
  tick(back);
  EXPECT_EQ(slow_from(back + 4 * 40'000).at(0), "0 SLOW_IO_SERVER s1 for 10000, 2000 to 200");
}

TEST_F(ServersTest, WhereTheOthersGoASlowOneComesBack) {
  hello(1);
  for (std::uint64_t i = 1; i <= 3; ++i) server(1, i);
  slow_from(0, 3);
  at(10, 12, event::Lost{});
  EXPECT_EQ(states(), "s1 slow 4; s2 lost 5; s3 up 3; ");
  EXPECT_EQ(at(11, 13, event::Lost{}), Lines{"1 SERVER_MAP 6 s1"});
  EXPECT_EQ(deadline_ms(), -1);
}

TEST_F(ServersTest, AMonitorOfSomebodyElsesIsBelieved) {
  hello(1);
  server(1, 1);
  server(1, 2);
  event::SlowIoServer told;
  told.server = "s2";
  EXPECT_EQ(at(2, tool, told), (Lines{"0 SLOW_IO_SERVER s2 for 10000", "1 SERVER_MAP 3 s1"}));
  EXPECT_EQ(at(2, tool, told), Lines{}) << "it is out";
  told.server = "s1";
  EXPECT_EQ(at(2, tool, told), Lines{"99 REFUSED SLOW_IO_SERVER: 's1' is the last server of the map and stays"});
}

TEST_F(ServersTest, AHungServerLeavesTheMapWhenItsProcessHasEnded) {
  hello(1);
  beating(0, 1);
  beating(0, 2);
  EXPECT_EQ(deadline_ms(), 5000);
  beat(1000, 1);
  beat(1000, 2);
  beat(4000, 2);
  EXPECT_EQ(deadline_ms(), 6000);
  EXPECT_EQ(tick(5999), Lines{}) << "too early";
  EXPECT_EQ(tick(6000), Lines{"0 HUNG_IO_SERVER s1 pid 701 silent 5000"});
  EXPECT_EQ(states(), "s1 hung 2; s2 up 2; ") << "it may still write, so the map keeps it";
  EXPECT_EQ(at(6001, 11, event::Lost{"connection closed"}), Lines{}) << "another thread may be inside a write";
  EXPECT_EQ(ended(6002, 1, 9999), Lines{}) << "another process";
  EXPECT_EQ(ended(6002, 1), Lines{"1 SERVER_MAP 3 s2"});
  EXPECT_EQ(states(), "s1 lost 3; s2 up 2; ");
  EXPECT_EQ(beating(7000, 1), Lines{"1 SERVER_MAP 4 s2 s1"}) << "started again";
}

TEST_F(ServersTest, OnlyTheDaemonReportsTheEndOfAProcess) {
  hello(1);
  beating(0, 1);
  EXPECT_EQ(at(1, tool, event::ServerEnded{"s1", 701}), Lines{});
  EXPECT_EQ(states(), "s1 up 1; ");
  EXPECT_TRUE(coordinator.servers().awaits_end("s1", 701, ""));
  EXPECT_FALSE(coordinator.servers().awaits_end("s1", 702, ""));
  EXPECT_EQ(ended(2, 1), Lines{"1 SERVER_MAP 2"});
  EXPECT_FALSE(coordinator.servers().awaits_end("s1", 701, ""));
}

// A server of another node, or a later one, may have the same name and process number.
TEST_F(ServersTest, OneRunOfAServerIsNotTakenForAnotherOfItsName) {
  hello(1);
  const auto arrive = [this](std::int64_t ms, std::uint64_t from, const char* instance, bool write_behind) {
    event::Server one{"s1", "unix:/s1", "/scratch", 1 << 20, write_behind, 701, std::chrono::seconds{1}};
    one.instance = instance;
    return at(ms, from, one);
  };
  EXPECT_EQ(arrive(0, 11, "a", true), (Lines{"11 SERVER_MAP 1 s1"}));
  EXPECT_EQ(stored(1, 1, 1), Lines{"1 SERVER_MAP 1 s1"});
  at(2, 11, event::Lost{"the link to node1 has ended"});
  EXPECT_EQ(arrive(3, 12, "b", true),
            Lines{"12 REFUSED SERVER: a server called 's1' was lost (pid 701 on node1) and may still write: choose "
                  "another name, or wait until its process has ended"});
  EXPECT_TRUE(coordinator.servers().may_still_write("s1", 701, "a"));
  EXPECT_FALSE(coordinator.servers().may_still_write("s1", 701, "b"));
  EXPECT_EQ(at(4, 0, event::ServerEnded{"s1", 701, "b"}), Lines{}) << "the end of another one";
  EXPECT_FALSE(coordinator.servers().awaits_end("s1", 701, "b"));
  EXPECT_EQ(arrive(5, 13, "a", true), (Lines{"13 SERVER_MAP 3 s1"})) << "it has come back";
  EXPECT_EQ(coordinator.servers().describe(Time{}).front().instance, "a");
  EXPECT_FALSE(coordinator.servers().may_still_write("s1", 701, "a"));
  at(6, 13, event::Lost{"the link to node1 has ended"});
  EXPECT_EQ(at(7, 0, event::ServerEnded{"s1", 701, "a"}), Lines{"1 SERVER_MAP 4"});
  EXPECT_EQ(arrive(8, 14, "b", true), (Lines{"14 SERVER_MAP 5 s1"})) << "the name is free";
  at(9, 14, event::Lost{"the link to node1 has ended"});
  EXPECT_EQ(set(10, "s2", "ended").size(), 1U) << "refused: there is no such server";
  EXPECT_EQ(set(10, "s1", "ended"), Lines{"1 SERVER_MAP 6"}) << "an operator knows that the node is off";
  EXPECT_EQ(set(11, "s1", "ended"),
            Lines{"99 REFUSED 's1' is no server whose end is waited for; 'hocket servers' lists them"});
}

// Nobody hears the heartbeats of a node that is cut off.
TEST_F(ServersTest, AServerThatIsHungMayComeBackOverAnotherConnection) {
  hello(1);
  event::Server one{"s1", "unix:/s1", "/scratch", 1 << 20, false, 701, std::chrono::seconds{1}};
  one.instance = "a";
  at(0, 11, one);
  beating(0, 2);
  beat(4000, 2);
  EXPECT_EQ(tick(5000), Lines{"0 HUNG_IO_SERVER s1 pid 701 silent 5000"});
  EXPECT_EQ(at(5001, 12, one).size(), 1U) << "refused while its first connection is there";
  at(5002, 11, event::Lost{"the link to node1 has ended"});
  EXPECT_EQ(states(), "s1 hung 2; s2 up 2; ");
  event::Server other = one;
  other.instance = "b";
  EXPECT_EQ(at(5003, 13, other).size(), 1U) << "another run of that name is refused";
  EXPECT_EQ(at(5004, 14, one), Lines{"1 SERVER_MAP 3 s2 s1"});
  EXPECT_EQ(states(), "s2 up 2; s1 up 3; ");
}

TEST_F(ServersTest, AHungServerThatContinuesIsWhereItWas) {
  hello(1);
  beating(0, 1);
  beating(0, 2);
  set(0, "s2", "drain");
  EXPECT_EQ(tick(5000), (Lines{"0 HUNG_IO_SERVER s1 pid 701 silent 5000", "0 HUNG_IO_SERVER s2 pid 702 silent 5000"}));
  EXPECT_EQ(set(5001, "s1", "drain"), Lines{"99 REFUSED 's1' is hung, and leaves the map when its process has ended"});
  EXPECT_EQ(beat(6000, 1), Lines{}) << "the map had kept it";
  EXPECT_EQ(beat(6000, 2), Lines{});
  EXPECT_EQ(states(), "s1 up 3; s2 drained 3; ");
}

TEST_F(ServersTest, ADaemonThatStoodStillBlamesNobody) {
  beating(0, 1);
  EXPECT_EQ(tick(6001), Lines{}) << "the tick was due at 5000: this daemon did not run";
  EXPECT_EQ(states(), "s1 up 1; ");
  EXPECT_EQ(deadline_ms(), 11'001);
  EXPECT_EQ(tick(11'001).size(), 1U);
}

TEST_F(ServersTest, OneWithoutHeartbeatIsNeverHung) {
  server(0, 1);
  EXPECT_EQ(deadline_ms(), -1);
}

TEST_F(ServersTest, ANewMapBeginsWhenServersHaveStoredWhatTheyHeld) {
  hello(1);
  EXPECT_EQ(beating(0, 1, true), Lines{"11 SERVER_MAP 1 s1"});
  EXPECT_EQ(stored(0, 1, 1), Lines{"1 SERVER_MAP 1 s1"});
  EXPECT_EQ(beating(1, 2, true), (Lines{"11 SERVER_MAP 2 s1 s2", "12 SERVER_MAP 2 s1 s2"}));
  EXPECT_EQ(stored(2, 2, 2), Lines{}) << "s1 holds data by the old map";
  EXPECT_EQ(hello(2), (Lines{"2 WELCOME app 1 app fcfs", "2 SERVER_MAP 1 s1"}));
  EXPECT_EQ(at(2, 1, event::MapAdopted{2}), Lines{});
  EXPECT_EQ(coordinator.describe(coordinator.cluster().applications().begin()->second, Time{}).map_epoch, 1)
      << "no later one than applications have";
  EXPECT_EQ(beating(3, 3), (Lines{"11 SERVER_MAP 3 s1 s2 s3", "12 SERVER_MAP 3 s1 s2 s3"}));
  EXPECT_EQ(stored(4, 1, 2), Lines{}) << "not the newest";
  EXPECT_EQ(stored(4, 1, 3), Lines{});
  EXPECT_EQ(stored(5, 2, 3), (Lines{"1 SERVER_MAP 3 s1 s2 s3", "2 SERVER_MAP 3 s1 s2 s3"})) << "s3 writes through";
}

TEST_F(ServersTest, ListsWhichServersAreInTheMapThatApplicationsHave) {
  const auto mapped = [this] {
    std::string names;
    for (const event::IoServer& row : coordinator.servers().describe(Time{})) names += row.in_map ? row.server : "";
    return names;
  };
  beating(0, 1, true);
  EXPECT_EQ(mapped(), "") << "not before it has answered";
  stored(0, 1, 1);
  beating(0, 2);
  EXPECT_EQ(mapped(), "s1");
  stored(0, 1, 2);
  EXPECT_EQ(mapped(), "s1s2");
  at(1000, tool, event::SetServer{"s1", "drain"});
  EXPECT_EQ(states(), "s1 drained 3; s2 up 2; ");
  EXPECT_EQ(mapped(), "s1s2") << "s1 may still store what it holds";
  stored(1001, 1, 3);
  EXPECT_EQ(mapped(), "s2");
}

TEST_F(ServersTest, AMapWithoutALostServerBeginsWhenItsProcessHasEnded) {
  hello(1);
  beating(0, 1, true);
  stored(0, 1, 1);
  beating(0, 2);
  stored(0, 1, 2);
  EXPECT_EQ(at(1000, 11, event::Lost{"connection closed"}), Lines{}) << "it may still store what it holds";
  EXPECT_EQ(states(), "s1 lost 3; s2 up 2; ");
  EXPECT_EQ(ended(1001, 1), Lines{"1 SERVER_MAP 3 s2"});
}

TEST_F(ServersTest, ALostServerWhoseProcessLivesIsKilledOnce) {
  hello(1);
  beating(0, 1, true);
  stored(0, 1, 1);
  at(1000, 11, event::Lost{"it did not read its answers"});
  EXPECT_EQ(deadline_ms(), 6000);
  EXPECT_EQ(tick(6000), Lines{"0 HUNG_IO_SERVER s1 pid 701 silent 6000"});
  EXPECT_EQ(deadline_ms(), -1);
  EXPECT_EQ(ended(6001, 1), Lines{"1 SERVER_MAP 2"});
}

TEST_F(ServersTest, AServerThatComesBackIsSentTheMapAgain) {
  hello(1);
  beating(0, 1, true);
  stored(0, 1, 1);
  at(1000, 11, event::Lost{"connection closed"});
  EXPECT_EQ(at(2000, 21, event::Server{"s1", "unix:/s1", "/scratch", 1 << 20, true, 701}), Lines{"21 SERVER_MAP 3 s1"});
  EXPECT_EQ(at(2001, 21, event::MapStored{3}), Lines{"1 SERVER_MAP 3 s1"});
}

TEST_F(ServersTest, OneThatEndsInOrderHasStored) {
  hello(1);
  beating(0, 1, true);
  stored(0, 1, 1);
  EXPECT_EQ(at(1000, 11, event::Bye{}), Lines{"1 SERVER_MAP 2"});
}

TEST_F(ServersTest, AnApplicationUsesTheOldestEpochOfItsMembers) {
  hello(1);
  hello(2);
  for (std::uint64_t i = 1; i <= 3; ++i) server(1, i);
  const auto epoch = [this] {
    return coordinator.describe(coordinator.cluster().applications().begin()->second, Time{}).map_epoch;
  };
  EXPECT_EQ(epoch(), 0);
  EXPECT_EQ(at(2, 1, event::MapAdopted{3}), Lines{});
  EXPECT_EQ(epoch(), 3);
  at(2, 2, event::MapAdopted{2});
  EXPECT_EQ(epoch(), 2);
  at(2, 2, event::MapAdopted{99});
  EXPECT_EQ(epoch(), 3) << "no later one than there is";
  at(2, 1, event::MapAdopted{0});
  at(2, 2, event::Bye{});
  EXPECT_EQ(epoch(), 0) << "nobody uses servers any more";
  EXPECT_EQ(at(2, tool, event::MapAdopted{1}), Lines{});
}

TEST_F(ServersTest, ListsTheLoadOfTheLastSecond) {
  server(0, 1);
  load(1000, 1, 200);
  load(1500, 1, 300);
  const auto row = [this](std::int64_t ms) { return coordinator.servers().describe(Time{} + milliseconds{ms}).at(0); };
  EXPECT_EQ(row(1600).operations, 20);
  EXPECT_EQ(row(1600).bytes, 20 << 20);
  EXPECT_EQ(row(1600).bytes_per_s, 20 << 20);
  EXPECT_EQ(row(1600).operations_per_s, 20);
  EXPECT_EQ(row(1600).busy, milliseconds{5});
  EXPECT_EQ(row(2100).bytes_per_s, 10 << 20);
  EXPECT_EQ(row(2600).bytes_per_s, 0);
  EXPECT_EQ(row(2600).last_service, microseconds{300});
  EXPECT_EQ(row(2600).queue, 3);
  EXPECT_EQ(row(2600).held_bytes, 4096);
  EXPECT_EQ(row(2600).pid, 77);
}

// ---- servers of one application ------------------------------------------------------------------------------------

TEST_F(ServersTest, ToolsAssignServersToAnApplication) {
  hello(1), hello(2), hello(3, "other", "b");
  for (std::uint64_t i = 1; i <= 3; ++i) server(1, i);
  EXPECT_EQ(assign(2, "s3,s2", "app"), (Lines{"1 SERVER_MAP 4 s2 s3", "2 SERVER_MAP 4 s2 s3"})) << "its members only";
  EXPECT_EQ(own_servers(1), "s2, s3");
  EXPECT_EQ(own_servers(2), "");
  EXPECT_EQ(hello(4), (Lines{"4 WELCOME app 1 app fcfs", "4 SERVER_MAP 4 s2 s3"}));
  EXPECT_EQ(hello(5, "third", "c"), (Lines{"5 WELCOME app 3 c fcfs", "5 SERVER_MAP 3 s1 s2 s3"}));
  at(2, 4, event::Bye{}), at(2, 5, event::Bye{});
  EXPECT_EQ(assign(2, "s2,s3", "app"), Lines{}) << "it has them";
  EXPECT_EQ(assign(3, "1", "b"), Lines{"3 SERVER_MAP 5 s1"}) << "the one that no other application has";
  EXPECT_EQ(assign(4, "2", "b"), Lines{"3 SERVER_MAP 6 s1 s2"});
  EXPECT_EQ(assign(5, "all", "app"), (Lines{"1 SERVER_MAP 7 s1 s2 s3", "2 SERVER_MAP 7 s1 s2 s3"}));
  EXPECT_EQ(coordinator.servers().epoch(), 3) << "the list of all is as it was";
}

TEST_F(ServersTest, RefusesAssignmentsThatCannotBe) {
  hello(1);
  server(1, 1), server(1, 2);
  EXPECT_EQ(assign(2, "s1", "b"), Lines{"99 REFUSED no application 'b' is running: 'hocket ls' lists them"});
  EXPECT_EQ(assign(2, "s1,s9", "app"), Lines{"99 REFUSED no server called 's9' runs; 'hocket servers' lists them"});
  const std::string count = ": give 1 to 2, as many as are up, or \"all\"";
  EXPECT_EQ(assign(2, "3", "app"), Lines{"99 REFUSED cannot assign 3 servers" + count});
  EXPECT_EQ(assign(2, "0", "app"), Lines{"99 REFUSED cannot assign 0 servers" + count});
  const std::string what = " are no servers: give a number, names joined by ',', or \"all\"";
  for (const char* text : {"", "s1,,s2", "-1", "s 1"}) {
    if (std::string{text} == "-1") continue;  // a name
    EXPECT_EQ(assign(2, text, "app"), Lines{"99 REFUSED SET_SERVER: '" + std::string{text} + "'" + what});
  }
  at(3, 12, event::Lost{});
  EXPECT_EQ(assign(4, "s2", "app"), Lines{"99 REFUSED no server called 's2' runs; 'hocket servers' lists them"});
}

TEST_F(ServersTest, WithoutItsServersAnApplicationUsesAll) {
  hello(1), hello(2, "other", "b");
  for (std::uint64_t i = 1; i <= 3; ++i) server(1, i);
  assign(2, "s1,s2", "app");
  EXPECT_EQ(set(3, "s1", "drain"), (Lines{"1 SERVER_MAP 5 s2", "2 SERVER_MAP 5 s2 s3"}));
  EXPECT_EQ(at(4, 12, event::Lost{}), (Lines{"1 SERVER_MAP 6 s3", "2 SERVER_MAP 6 s3"}));
  EXPECT_EQ(own_servers(1), "");
  const auto row = coordinator.describe(*coordinator.cluster().find(AppId{1}), {});
  EXPECT_EQ(row.servers, "");
  EXPECT_EQ(row.assigned_servers, "s1, s2") << "the assignment is not lost";
  EXPECT_EQ(set(5, "s1", "add"), (Lines{"1 SERVER_MAP 7 s1", "2 SERVER_MAP 7 s1 s3"})) << "it has one again";
}

TEST_F(ServersTest, TheHomesOfDataSetsFollowTheListOfAll) {
  hello(1), hello(2, "other", "b");
  std::map<std::uint64_t, event::ServerMap> maps;
  const auto take = [&](const event::Event& event) {
    for (const Command& command : coordinator.handle(event)) {
      const auto* map = std::get_if<event::NewServerMap>(&command.body);
      if (map != nullptr) maps[command.to.value] = event::parse_server_map(map->epoch, map->text).value();
    }
  };
  for (std::uint64_t i = 1; i <= 5; ++i) {
    const std::string name = "s" + std::to_string(i);
    take(testing::event_of(1, 10 + i, event::Server{name, "unix:/" + name, "/scratch"}));
  }
  take(testing::event_of(2, tool, event::SetServer{"s2", "assign", "app"}));
  ASSERT_EQ(event::servers_of(maps[1], "/scratch/f").size(), 1U);
  ASSERT_EQ(event::servers_of(maps[2], "/scratch/f").size(), 5U);
  for (int i = 0; i < 100; ++i) {
    const std::string data_set = "d" + std::to_string(i);
    EXPECT_EQ(event::home_of(maps[1], data_set)->name, event::home_of(maps[2], data_set)->name);
  }
}

TEST_F(ServersTest, WhileMapsDifferServersWriteThrough) {
  hello(1), hello(2, "other", "b");
  beating(1, 1, true), beating(1, 2, true);
  stored(2, 1, 2), stored(2, 2, 2);
  EXPECT_EQ(assign(3, "s1", "app"),
            (Lines{"11 SERVER_MAP 3 s1 s2, write through", "12 SERVER_MAP 3 s1 s2, write through"}));
  EXPECT_EQ(assign(3, "s2", "b"), Lines{}) << "it waits for the same";
  EXPECT_EQ(stored(4, 1, 3), Lines{});
  EXPECT_EQ(stored(4, 2, 3), (Lines{"1 SERVER_MAP 3 s1", "2 SERVER_MAP 4 s2"}));
  at(5, 1, event::MapAdopted{3}), at(5, 2, event::MapAdopted{4});
  EXPECT_EQ(assign(6, "all", "app"), Lines{"1 SERVER_MAP 5 s1 s2"});
  EXPECT_EQ(at(7, 2, event::Bye{}), Lines{}) << "'app' may still use a map of its own";
  EXPECT_EQ(at(8, 1, event::MapAdopted{5}), (Lines{"11 SERVER_MAP 6 s1 s2", "12 SERVER_MAP 6 s1 s2"}));
  EXPECT_EQ(stored(9, 1, 6), Lines{}) << "nothing changes for the application";
  EXPECT_EQ(stored(9, 2, 6), Lines{});
  EXPECT_EQ(assign(10, "s2", "app").size(), 2U);
  EXPECT_EQ(at(11, 1, event::Lost{}), (Lines{"11 SERVER_MAP 8 s1 s2", "12 SERVER_MAP 8 s1 s2"})) << "it has ended";
}

}  // namespace
}  // namespace hocket::coordinator
