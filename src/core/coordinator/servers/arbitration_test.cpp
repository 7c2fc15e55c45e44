// Tests the policies that give forwarded applications numbers of I/O servers, case by case. Random sets of applications
// and servers: arbitration_property_test.cpp.
#include <gtest/gtest.h>

#include "coordinator/coordinator.hpp"
#include "coordinator/script_testing.hpp"
#include "explain/explain.hpp"

namespace hocket::coordinator {
namespace {

using testing::Lines;

// The numbers of Table 4 of GekkoFWD for two jobs: IOR-MPI is best with 8 servers, BT-C without one.
constexpr const char* ior = "1:268400000 8:5089900000";
constexpr const char* bt_c = "0:195700000 1:77600000";

class ArbitrationTest : public testing::Script {
 protected:
  ArbitrationTest() : Script(settings("mckp")) {}

  static CoordinatorSettings settings(const std::string& policy, const policy::ArbitrationSettings& rules = {}) {
    CoordinatorSettings made = testing::usual_settings();
    made.policy = policy::parse_combination("fcfs+" + policy).value();
    made.arbitration = rules;
    return made;
  }
  std::optional<std::string> line_of(const Command& command) override {
    const auto* made = std::get_if<event::Decision>(&command.body);
    if (made != nullptr) return explain::sentence(*made);
    if (std::holds_alternative<event::Welcome>(command.body)) return std::nullopt;
    return testing::describe(command);
  }
  Lines forward(std::int64_t ms, std::uint64_t member, const std::string& name, std::int64_t nodes,
                const std::string& curve, const std::string& file_system = {}) {
    event::Hello hello{name + "-job", name, "/bin/" + name, "", "0.1", 99, nodes * 4};
    hello.forwards = true;
    hello.compute_nodes = nodes;
    hello.curve = curve;
    hello.file_system = file_system;
    return at(ms, member, hello);
  }
  Lines server(std::int64_t ms, std::uint64_t number, const std::string& file_system = {}) {
    const std::string name = "s" + std::to_string(number);
    event::Server said{name, "unix:/" + name, "/scratch", 1 << 20, false, 77};
    said.file_system = file_system;
    return at(ms, 10 + number, std::move(said));
  }
  void servers(std::uint64_t count) {
    for (std::uint64_t i = 1; i <= count; ++i) server(0, i);
  }
  std::string given(const std::string& name) const {
    const model::Application* application = coordinator.cluster().find_application(name);
    const event::Application row = coordinator.describe(*application, Time{});
    return std::to_string(row.given_servers) + ": " + row.assigned_servers;
  }
  static constexpr std::uint64_t tool = 99;
  static constexpr const char* shm = "dev:0:25";
  static constexpr const char* disk = "dev:8:1";
};

TEST_F(ArbitrationTest, EachStartAndEndIsFollowedAtOnce) {
  servers(8);
  EXPECT_EQ(forward(1, 1, "ior", 16, ior),
            (Lines{"1 SERVER_MAP 9 s1 s2 s3 s4 s5 s6 s7 s8",
                   "'ior' gets 8 I/O servers (s1, s2, s3, s4, s5, s6, s7, s8) by mckp for 16 nodes and 64 processes; "
                   "expected: 5089.9 MB/s; all 1: 5089.9 MB/s with 8 of 8 servers; next best: 1 server, 268.4 MB/s in "
                   "all; epoch 9"}));
  EXPECT_EQ(forward(2, 2, "bt-c", 32, bt_c),
            (Lines{"2 SERVER_MAP 10, direct",
                   "'bt-c' gets no I/O server and accesses its files directly by mckp for 32 nodes and 128 processes; "
                   "expected: 195.7 MB/s; all 2: 5285.6 MB/s with 8 of 8 servers; next best: 1 server, 346.0 MB/s in "
                   "all; epoch 10"}));
  EXPECT_EQ(given("bt-c"), "0: ");
  EXPECT_EQ(
      forward(3, 3, "more", 1, "1:9000000000"),
      (Lines{"1 SERVER_MAP 11 s1", "3 SERVER_MAP 11 s2",
             "'ior' gets 1 I/O server (s1) by mckp for 16 nodes and 64 processes; expected: 268.4 MB/s, 5 % of its "
             "best alone; all 3: 9464.1 MB/s with 2 of 8 servers; epoch 11",
             "'more' gets 1 I/O server (s2) by mckp for 1 node and 4 processes; expected: 9000.0 MB/s; all 3: "
             "9464.1 MB/s with 2 of 8 servers; epoch 11"}))
      << "within 5 s of the last change";
  EXPECT_EQ(at(4, 3, event::Bye{}).front(), "1 SERVER_MAP 12 s1 s2 s3 s4 s5 s6 s7 s8");
  EXPECT_EQ(at(5, 18, event::Lost{}).back().substr(0, 26), "'ior' gets 1 I/O server (s");
  EXPECT_EQ(given("ior"), "1: s1") << "7 are left, and it was measured with 1 and 8";
  EXPECT_EQ(server(6, 9).back().substr(0, 27), "'ior' gets 8 I/O servers (s");
}

TEST_F(ArbitrationTest, OneThatNobodyMeasuredGetsTheNumberOfStatic) {
  restart(settings("mckp", {{}, 32, 4}));
  servers(4);
  forward(1, 1, "big", 16, "");
  forward(1, 2, "small", 3, "no curve");
  EXPECT_EQ(given("big"), "2: s1, s2");
  EXPECT_EQ(given("small"), "1: s3");
  EXPECT_THAT(
      forward(2, 3, "third", 8, "").back(),
      ::testing::HasSubstr("by mckp for 8 nodes and 32 processes; nobody has measured its bandwidth, so the number "
                           "is that of static on a system of 32 nodes and 4 servers; "));
}

TEST_F(ArbitrationTest, StaticSaysOnWhichSystem) {
  restart(settings("static", {{}, 32, 4}));
  servers(5);
  EXPECT_THAT(
      forward(1, 1, "a", 16, "").back(),
      ::testing::HasSubstr("'a' gets 2 I/O servers (s1, s2) by static for 16 nodes and 64 processes on a system of "
                           "32 nodes and 4 servers; nobody has measured its bandwidth; "));
  EXPECT_THAT(at(2, 11, event::Lost{}).back(), ::testing::HasSubstr("by static for 16 nodes and 64 processes; "))
      << "it keeps a number that was decided before";
  restart(settings("static"));
  servers(5);
  EXPECT_THAT(forward(1, 1, "a", 1, "").back(),
              ::testing::HasSubstr("by static for 1 node and 4 processes on a system of 1 node (those of the present "
                                   "applications) and 5 servers; "));
}

TEST_F(ArbitrationTest, AMapOfItsOwnIsTheFirstThatItGets) {
  servers(2);
  EXPECT_EQ(forward(1, 1, "a", 1, "1:5").front(), "1 SERVER_MAP 3 s1");
  EXPECT_EQ(hello(5, "job", "collective"), Lines{"5 SERVER_MAP 2 s1 s2"}) << "others use all";
  restart(settings("mckp"));
  EXPECT_EQ(forward(1, 1, "a", 1, "1:5"), Lines{}) << "there is no server";
  EXPECT_EQ(server(2, 1).front(), "1 SERVER_MAP 1 s1");
  EXPECT_EQ(given("a"), "1: s1");
}

TEST_F(ArbitrationTest, ThatWhichIsAssignedByHandGoesFirst) {
  servers(3);
  forward(1, 1, "a", 1, "1:5 2:9 3:12");
  forward(1, 2, "b", 1, "1:5 2:8");
  EXPECT_EQ(given("a"), "2: s1, s2");
  at(2, tool, event::SetServer{"s1", "assign", "b"});
  EXPECT_EQ(given("b"), "1: s1");
  EXPECT_EQ(given("a"), "2: s2, s3") << "s1 is taken";
  at(3, tool, event::SetServer{"0", "assign", "b"});
  EXPECT_EQ(given("b"), "0: ");
  EXPECT_EQ(given("a"), "3: s1, s2, s3");
  at(4, tool, event::SetServer{"all", "assign", "b"});
  EXPECT_EQ(given("b"), "1: s3") << "as the policy has it again";
}

TEST_F(ArbitrationTest, OnlyForwardedApplicationsMayHaveNone) {
  servers(1);
  hello(5, "job", "collective");
  EXPECT_EQ(at(2, tool, event::SetServer{"0", "assign", "collective"}).size(), 1U);
  EXPECT_EQ(given("collective"), "-1: ");
}

TEST_F(ArbitrationTest, StaticChangesNoRunningJob) {
  restart(settings("static", {{}, 32, 4}));
  servers(4);
  forward(1, 1, "a", 16, "");
  EXPECT_EQ(given("a"), "2: s1, s2");
  forward(2, 2, "b", 32, "");
  EXPECT_EQ(given("b"), "4: s1, s2, s3, s4");
  EXPECT_EQ(server(3, 5), (Lines{"1 SERVER_MAP 7 s1 s2", "2 SERVER_MAP 7 s1 s2 s3 s4"})) << "in a new epoch";
  at(4, 2, event::Bye{});
  EXPECT_EQ(given("a"), "2: s1, s2");
  at(5, 11, event::Lost{});
  EXPECT_EQ(given("a"), "2: s2, s3") << "s1 has gone";
}

TEST_F(ArbitrationTest, WithoutAnAllocationThatSatisfiesTheRulesStaticDecides) {
  restart(settings("mckp", {{.direct = false}, 0, 0}));
  servers(2);
  forward(1, 1, "a", 1, "1:10000000");
  forward(1, 2, "b", 1, "1:20000000");
  const Lines told = forward(2, 3, "c", 1, "1:30000000");
  EXPECT_EQ(told.back(),
            "'c' gets 1 I/O server (s1), shared with others by static for 1 node and 4 processes on a system of 3 "
            "nodes (those "
            "of the present applications) and 2 servers, because no allocation gives each application a server; "
            "expected: 20.0 MB/s, 67 % of its best alone; all 3: 40.0 MB/s with 3 of 2 "
            "servers; epoch 5");
  restart(settings("mckp", {{.least_of_static = 1.2}, 4, 2}));
  servers(2);
  const Lines limited = forward(1, 1, "a", 1, "1:10000000");
  EXPECT_NE(limited.back().find("because no allocation leaves each application 120 % of its bandwidth under static"),
            std::string::npos)
      << limited.back();
}

TEST_F(ArbitrationTest, ASlowServerIsOneLessToGiveOut) {
  servers(3);
  forward(1, 1, "a", 1, "1:5 2:9 3:12");
  EXPECT_EQ(given("a"), "3: s1, s2, s3");
  for (int i = 0; i < 4; ++i) {
    for (std::uint64_t server = 1; server <= 3; ++server) {
      const std::chrono::microseconds service{server == 1 ? 20'000 : 2000};
      at(10 + i, 10 + server, event::ServerLoad{10, 10 << 20, service, 3, 4096, {}});
    }
  }
  EXPECT_EQ(given("a"), "2: s2, s3");
  tick(20'000);
  EXPECT_EQ(given("a"), "3: s1, s2, s3") << "after its hold-off";
}

TEST_F(ArbitrationTest, AnotherPolicyTakesTheNumbersBack) {
  servers(2);
  forward(1, 1, "a", 1, "1:5");
  const Lines told = at(2, tool, event::SetPolicy{"set-aside"});
  EXPECT_EQ(told, Lines{"1 SERVER_MAP 4 s1 s2"});
  EXPECT_EQ(given("a"), "-1: ");
  EXPECT_EQ(at(3, tool, event::SetPolicy{"one"}).front(), "1 SERVER_MAP 5 s1");
}

// ---- file systems --------------------------------------------------------------------------------------------------

TEST_F(ArbitrationTest, EachFileSystemHasItsOwnPool) {
  server(0, 1, shm);
  server(0, 2, shm);
  server(0, 3, disk);
  EXPECT_EQ(forward(1, 1, "on-disk", 1, "1:5000000 2:9000000 3:12000000", disk),
            (Lines{"1 SERVER_MAP 4 s3",
                   "'on-disk' gets 1 I/O server (s3) by mckp for 1 node and 4 processes; expected: 5.0 MB/s; all 1 on "
                   "dev:8:1: 5.0 MB/s with 1 of 1 server; epoch 4"}));
  forward(2, 2, "in-memory", 1, "1:5 2:9", shm);
  EXPECT_EQ(given("in-memory"), "2: s1, s2");
  EXPECT_EQ(given("on-disk"), "1: s3");
  server(3, 4, disk);
  EXPECT_EQ(given("on-disk"), "2: s3, s4");
  EXPECT_EQ(given("in-memory"), "2: s1, s2");
}

TEST_F(ArbitrationTest, OneWithoutAServerOnItsFileSystemIsGivenNone) {
  server(0, 1, shm);
  EXPECT_EQ(
      forward(1, 1, "a", 1, "1:5", disk),
      (Lines{"1 SERVER_MAP 2", "'a' gets no I/O server, because none is up on its file system, dev:8:1; epoch 2"}))
      << "its map names none, but is not one of an application that is to have none";
  EXPECT_EQ(given("a"), "0: ");
  EXPECT_EQ(server(2, 2, shm), Lines{"1 SERVER_MAP 3"}) << "nothing is decided anew";
  EXPECT_EQ(server(3, 3, disk).at(1), "1 SERVER_MAP 5 s3");
  EXPECT_EQ(given("a"), "1: s3");
  EXPECT_EQ(at(4, 13, event::Lost{}).at(1), "1 SERVER_MAP 7");
  EXPECT_EQ(given("a"), "0: ");
  EXPECT_EQ(at(5, tool, event::SetPolicy{"set-aside"}), Lines{"1 SERVER_MAP 8 s1 s2"}) << "all, as without a policy";
}

// To have none because none fits is no number that `static` keeps.
TEST_F(ArbitrationTest, StaticGivesANumberWhenAServerFits) {
  restart(settings("static", {{}, 32, 4}));
  server(0, 1, shm);
  forward(1, 1, "a", 16, "0:7 1:5", disk);
  forward(1, 2, "b", 16, "", disk);
  EXPECT_EQ(given("b"), "0: ");
  server(2, 2, disk);
  server(2, 3, disk);
  EXPECT_EQ(given("b").substr(0, 2), "1:") << "as many as there were when the first one came";
}

TEST_F(ArbitrationTest, AnApplicationOrServerThatNamesNoFileSystemFitsAll) {
  server(0, 1);
  server(0, 2, shm);
  server(0, 3, disk);
  forward(1, 1, "a", 1, "1:5 2:9 3:12", disk);
  EXPECT_EQ(given("a"), "2: s1, s3");
  at(2, 1, event::Bye{});
  forward(3, 2, "b", 1, "1:5 2:9 3:12");
  EXPECT_EQ(given("b"), "3: s1, s2, s3");
}

TEST_F(ArbitrationTest, ServersAreAssignedByHandOnTheFileSystemOnly) {
  restart(settings("set-aside"));
  server(0, 1, shm);
  server(0, 2, shm);
  server(0, 3, disk);
  forward(1, 1, "a", 1, "", disk);
  forward(1, 2, "b", 1, "", shm);
  forward(1, 3, "c", 1, "", "dev:8:2");
  EXPECT_EQ(
      at(2, tool, event::SetServer{"s1,s3", "assign", "a"}),
      Lines{"99 REFUSED I/O server 's1' is on dev:0:25, and the files of 'a' are on dev:8:1: name servers on it"});
  EXPECT_EQ(at(2, tool, event::SetServer{"2", "assign", "a"}),
            Lines{"99 REFUSED cannot assign 2 servers: give 1 to 1, as many as are up on dev:8:1, or \"all\""});
  EXPECT_EQ(at(2, tool, event::SetServer{"1", "assign", "c"}),
            Lines{"99 REFUSED cannot assign 1 server: none is up on dev:8:2"});
  EXPECT_EQ(given("a"), "-1: ");
  at(3, tool, event::SetServer{"1", "assign", "a"});
  EXPECT_EQ(given("a"), "1: s3") << "not s1, which came first";
  at(3, tool, event::SetServer{"s2", "assign", "b"});
  EXPECT_EQ(given("b"), "1: s2");
}

// Servers hold nothing of forwarded applications, so that others go on writing behind.
TEST_F(ArbitrationTest, ServersThatWriteBehindGoOnWithIt) {
  at(0, 11, event::Server{"s1", "unix:/s1", "/scratch", 1 << 20, true, 77});
  at(0, 11, event::MapStored{1});
  const Lines told = forward(1, 1, "a", 1, "0:5 1:4");
  EXPECT_EQ(told.front(), "1 SERVER_MAP 2, direct");
  EXPECT_EQ(told.size(), 2U);
}

}  // namespace
}  // namespace hocket::coordinator
