#include "daemon/servers_elsewhere.hpp"

#include <gtest/gtest.h>

#include <set>

#include "event/event.hpp"

namespace hocket::daemon {
namespace {

using std::chrono::seconds;

event::Server server(const std::string& name, std::int64_t pid, const std::string& instance) {
  event::Server one;
  one.server = name;
  one.pid = pid;
  one.instance = instance;
  return one;
}

Time at_s(int s) { return Time{} + seconds{s}; }

class ServersElsewhereTest : public ::testing::Test {
 protected:
  // Returns the orders since the last call, "IDENTITY TYPE".
  std::vector<std::string> orders() { return std::exchange(orders_, {}); }

  using Lines = std::vector<std::string>;
  std::set<std::string> linked_{"a", "b"};
  std::set<std::string> silent_;
  bool writes_ = true;
  bool awaited_ = true;
  Lines orders_;
  ServersElsewhere servers_{[this](const std::string& identity, const event::Body& body) {
                              if (!linked_.contains(identity)) return false;
                              orders_.push_back(identity + " " + std::string{event::type_name(body)});
                              return true;
                            },
                            [this](const std::string& identity) { return !silent_.contains(identity); },
                            [this](const event::Server&) { return writes_; },
                            [this](const event::Server&) { return awaited_; }};
};

TEST_F(ServersElsewhereTest, AHungOneIsKilledByTheAgentOfItsNode) {
  servers_.follow("a", server("s1", 5, "1"));
  servers_.follow("b", server("s2", 5, "2"));
  EXPECT_TRUE(servers_.kill({"s2", 5, {}, "2"}, at_s(0)));
  EXPECT_EQ(orders(), Lines{"b HUNG_IO_SERVER"});
  EXPECT_FALSE(servers_.kill({"s2", 5, {}, "1"}, at_s(0))) << "another run";
  EXPECT_FALSE(servers_.kill({"s3", 5, {}, "2"}, at_s(0)));
}

TEST_F(ServersElsewhereTest, ANodeThatComesBackIsAskedWhatHasBecomeOfItsServers) {
  servers_.follow("a", server("s1", 5, "1"));
  linked_.erase("a");
  EXPECT_TRUE(servers_.kill({"s1", 5, {}, "1"}, at_s(0)));
  EXPECT_EQ(orders(), Lines{});
  linked_.insert("a");
  servers_.joined("a", at_s(10));
  EXPECT_EQ(orders(), Lines{"a SERVER"}) << "it may register again first";
  EXPECT_EQ(servers_.deadline(), at_s(20));
  servers_.tick(at_s(19));
  EXPECT_EQ(orders(), Lines{});
  servers_.tick(at_s(20));
  EXPECT_EQ(orders(), Lines{"a HUNG_IO_SERVER"});
  EXPECT_EQ(servers_.deadline(), std::nullopt);
}

TEST_F(ServersElsewhereTest, AnOrderThatWasLostWithItsLinkIsGivenAgain) {
  servers_.follow("a", server("s1", 5, "1"));
  EXPECT_TRUE(servers_.kill({"s1", 5, {}, "1"}, at_s(0)));
  EXPECT_EQ(orders(), Lines{"a HUNG_IO_SERVER"});
  servers_.joined("a", at_s(30));
  EXPECT_EQ(orders(), Lines{"a SERVER"});
  servers_.tick(at_s(40));
  EXPECT_EQ(orders(), Lines{"a HUNG_IO_SERVER"});
}

TEST_F(ServersElsewhereTest, ANodeThatHasGoneSilentGetsNoOrderThatWaitsForIt) {
  servers_.follow("a", server("s1", 5, "1"));
  silent_.insert("a");
  EXPECT_TRUE(servers_.kill({"s1", 5, {}, "1"}, at_s(5)));
  EXPECT_EQ(orders(), Lines{});
  servers_.joined("a", at_s(9));
  silent_.erase("a");
  EXPECT_EQ(orders(), Lines{"a SERVER"});
  servers_.follow("a", server("s1", 5, "1"));
  servers_.tick(at_s(60));
  EXPECT_EQ(orders(), Lines{}) << "it has come back";
}

TEST_F(ServersElsewhereTest, OneWhoseNodeWasSilentAndStaysLinkedIsKilledLater) {
  servers_.follow("a", server("s1", 5, "1"));
  silent_.insert("a");
  servers_.kill({"s1", 5, {}, "1"}, at_s(5));
  servers_.tick(at_s(15));
  EXPECT_EQ(orders(), Lines{});
  silent_.erase("a");
  servers_.tick(at_s(25));
  EXPECT_EQ(orders(), Lines{"a HUNG_IO_SERVER"});
}

TEST_F(ServersElsewhereTest, OneThatHasRegisteredAgainIsNotKilled) {
  servers_.follow("a", server("s1", 5, "1"));
  linked_.erase("a");
  servers_.kill({"s1", 5, {}, "1"}, at_s(0));
  linked_.insert("a");
  servers_.joined("a", at_s(10));
  writes_ = false;  // it is up
  servers_.tick(at_s(20));
  EXPECT_EQ(orders(), Lines{"a SERVER"});
  servers_.follow("a", server("s1", 5, "1"));
  EXPECT_EQ(servers_.deadline(), std::nullopt);
}

TEST_F(ServersElsewhereTest, NoAgentSpeaksForAnotherNode) {
  servers_.follow("a", server("s1", 5, "1"));
  EXPECT_TRUE(servers_.runs_on("a", {"s1", 5, "1"}));
  EXPECT_FALSE(servers_.runs_on("b", {"s1", 5, "1"}));
  EXPECT_FALSE(servers_.runs_on("a", {"s1", 5, "2"})) << "a later run with the same process number";
  EXPECT_EQ(servers_.node_of("s1", ""), "a");
  EXPECT_EQ(servers_.node_of("s1", "2"), "");
  awaited_ = false;
  servers_.joined("a", at_s(1));
  EXPECT_EQ(orders(), Lines{}) << "one that has ended is forgotten";
  EXPECT_FALSE(servers_.runs_on("a", {"s1", 5, "1"}));
}

}  // namespace
}  // namespace hocket::daemon
